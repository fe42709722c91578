// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/plan.hpp"
#include "worker/modes/table.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace plateau {

namespace {

// Which of the program's values lie in the block, and where.
struct layout {
  std::vector<std::size_t> root;    // by value: the value whose memory it has; itself unless it works in place
  std::vector<std::int64_t> offset; // by value; -1: not in the block
  std::int64_t bytes = 0;
};

bool is_placed(value const& v) { return v.role == value_role::temporary || v.role == value_role::output; }

std::vector<std::size_t> roots(program const& p) {
  std::vector<std::size_t> root(p.values.size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  for (std::size_t i = 0; i < root.size(); ++i)
    while (auto const alias = p.values[root[i]].alias_of) root[i] = *alias;
  return root;
}

std::int64_t bytes_of(value const& v, std::int64_t element) {
  return std::accumulate(v.shape.begin(), v.shape.end(), element, std::multiplies{});
}

// When each value's memory is in use. The output's is until the next request.
std::vector<lifetime> lifetimes_of(program const& p, std::vector<std::size_t> const& root, std::int64_t element) {
  std::vector<lifetime> lives(p.values.size());
  for (std::size_t i = 0; i < lives.size(); ++i) lives[i] = {bytes_of(p.values[i], element), p.ops.size(), 0};
  auto const use = [&](std::size_t v, std::size_t step) {
    auto& life = lives[root[v]];
    life.first_use = std::min(life.first_use, step);
    life.last_use = std::max(life.last_use, step);
  };
  for (std::size_t step = 0; step < p.ops.size(); ++step) {
    use(p.ops[step].out, step);
    for (auto const v : p.ops[step].in) use(v, step);
  }
  if (auto const result = p.output()) use(*result, p.ops.size());
  return lives;
}

layout plan(program const& p, std::int64_t element) {
  layout made{.root = roots(p), .offset = std::vector<std::int64_t>(p.values.size(), -1)};
  auto const lives = lifetimes_of(p, made.root, element);
  std::vector<std::size_t> placed;
  std::vector<lifetime> placed_lives;
  for (std::size_t i = 0; i < p.values.size(); ++i)
    if (is_placed(p.values[i]) && made.root[i] == i) {
      placed.push_back(i);
      placed_lives.push_back(lives[i]);
    }
  auto const planned = plan_offsets(placed_lives);
  if (auto const overlap = find_overlap(placed_lives, planned))
    throw std::logic_error("the arena's plan lets " + p.values[placed[overlap->first]].name + " and " +
                           p.values[placed[overlap->second]].name + " share memory");
  for (std::size_t k = 0; k < placed.size(); ++k) made.offset[placed[k]] = planned.offsets[k];
  made.bytes = planned.bytes;
  return made;
}

class planned_executor final : public executor {
public:
  planned_executor(mode_input const& in, layout const& where, stream& s, at::Tensor const& input);
  void submit() override {
    for (auto const& call : calls_) call();
  }
  void drop() override {} // the result's memory is the next request's
  at::Tensor output() const override { return output_; }

private:
  at::Tensor block_;
  std::vector<std::function<void()>> calls_;
  at::Tensor output_;
};

planned_executor::planned_executor(mode_input const& in, layout const& where, stream& s, at::Tensor const& input)
    : executor(s) {
  auto const& p = in.prog;
  if (p.ops.empty()) return;
  block_ = at::empty({where.bytes}, input.options().dtype(at::kByte));
  block_.fill_(0xff); // NaN in every dtype: bytes that are read before they are written spoil the output

  auto values = in.weights;
  values[p.input()] = input;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const from = where.root[i];
    if (is_placed(p.values[i])) // a view of its own memory each: views of one storage make Torch's overlap
                                // checks raise
      values[i] = from == i ? at::from_blob(block_.data_ptr<std::uint8_t>() + where.offset[i], p.values[i].shape,
                                            input.options())
                            : values[from];
  }
  for (auto const& op : p.ops) {
    std::vector<at::Tensor> arguments;
    for (auto const i : op.in) arguments.push_back(values[i]);
    calls_.push_back(op.bind(std::move(arguments), values[op.out]));
  }
  output_ = values[p.ops.back().out];
}

class arena_planned final : public prepared_mode {
public:
  explicit arena_planned(mode_input const& in)
      : in_(in), where_(plan(in.prog, static_cast<std::int64_t>(c10::elementSize(dtype_of(in.run))))) {}
  std::unique_ptr<executor> make_executor(stream& s, at::Tensor input) override {
    return std::make_unique<planned_executor>(in_, where_, s, input);
  }
  std::optional<std::string> arena_kind() const override { return "planned"; }

private:
  mode_input in_;
  layout where_;
};

} // namespace

std::unique_ptr<prepared_mode> prepare_arena_planned(mode_input const& in) {
  return std::make_unique<arena_planned>(in);
}

} // namespace plateau
