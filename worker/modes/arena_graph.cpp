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

  // Twice before it counts: the first request on a stream loads kernels and takes the workspaces that libraries keep
  // for it. They must not lie in the graph's pool.
  void rehearse() {
    stream_.enter();
    for (int twice = 0; twice < 2; ++twice) {
      pass_->submit();
      pass_->wait();
      pass_->drop();
    }
  }

  void capture() {
    stream_.enter();
    graph_ = stream_.capture([this] {
      pass_->submit();
      output_ = pass_->output();
      pass_->drop();
    });
    pass_.reset();
  }

private:
  stream& stream_;
  std::unique_ptr<executor> pass_; // until it is captured
  std::unique_ptr<captured_work> graph_;
  at::Tensor output_;
};

class arena_graph final : public prepared_mode {
public:
  explicit arena_graph(mode_input const& in) : empty_(in.prog.ops.empty()), eager_(prepare_eager(in)) {}

  std::unique_ptr<executor> make_executor(stream& s, at::Tensor input) override {
    auto made = std::make_unique<graph_executor>(s, eager_->make_executor(s, std::move(input)));
    executors_.push_back(made.get());
    return made;
  }

  // One after the other, each on the stream that will replay it: workspaces are kept for each handle and stream, so
  // graphs that were captured on one stream would share one, and race.
  void warm(std::span<std::unique_ptr<executor> const>) override {
    if (empty_) return; // CUDA warns of graphs without a node
    for (auto* const e : executors_) e->rehearse();
    for (auto* const e : executors_) e->capture();
  }

  std::optional<std::string> arena_kind() const override { return "graph"; }

private:
  bool empty_;
  std::unique_ptr<prepared_mode> eager_;
  std::vector<graph_executor*> executors_;
};

} // namespace

std::unique_ptr<prepared_mode> prepare_arena_graph(mode_input const& in) {
  if (in.dev.torch_device().is_cpu())
    throw unsupported("arena_graph needs CUDA graphs, and this device is a CPU; arena_planned runs here");
  return std::make_unique<arena_graph>(in);
}

} // namespace plateau
