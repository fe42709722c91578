// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/table.hpp"

#include <utility>

namespace plateau {

namespace {

// Eager's pass, captured once. The result lies in the graph's pool, where every request writes it anew.
class graph_executor final : public executor {
public:
  graph_executor(stream& s, std::unique_ptr<executor> pass) : executor(s), stream_(s), pass_(std::move(pass)) {}

  void submit() override {
    if (graph_) graph_->submit();
  }
  void drop() override {}
  at::Tensor output() const override { return output_; }
  void settle() override;

private:
  stream& stream_;
  std::unique_ptr<executor> pass_; // until it is captured; null for a program without operators
  std::unique_ptr<captured_work> graph_;
  at::Tensor output_;
};

// On the thread and the stream that will replay it, since libraries keep a workspace for each of both: graphs that were
// captured on one stream would share one, and race. Twice before that, so that this workspace is not in the graph's
// pool, and kernels are loaded.
void graph_executor::settle() {
  if (!pass_) return;
  for (int twice = 0; twice < 2; ++twice) pass_->run_once();
  graph_ = stream_.capture([this] {
    pass_->submit();
    output_ = pass_->output();
    pass_->drop();
  });
  pass_.reset();
}

class arena_graph final : public prepared_mode {
public:
  explicit arena_graph(mode_input const& in) : empty_(in.prog.ops.empty()), eager_(prepare_eager(in)) {}

  std::unique_ptr<executor> make_executor(stream& s, at::Tensor input) override {
    auto pass = empty_ ? nullptr : eager_->make_executor(s, std::move(input)); // CUDA warns of a graph without a node
    return std::make_unique<graph_executor>(s, std::move(pass));
  }
  std::optional<std::string> arena_kind() const override { return "graph"; }

private:
  bool empty_;
  std::unique_ptr<prepared_mode> eager_;
};

} // namespace

std::unique_ptr<prepared_mode> prepare_arena_graph(mode_input const& in) {
  if (in.dev.torch_device().is_cpu())
    throw unsupported("arena_graph needs CUDA graphs, and this device is a CPU; arena_planned runs here");
  return std::make_unique<arena_graph>(in);
}

} // namespace plateau
