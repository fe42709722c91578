// SPDX-License-Identifier: Apache-2.0
#include "worker/modes/table.hpp"

#include <utility>

namespace plateau {

namespace {

// One operator with its arguments in place. Weights and the input stay; a temporary moves in when it is made
// and is let go after the call, so that it dies with its last use and nothing is allocated or counted but
// what Torch does.
struct step {
  op const* what = nullptr;
  std::vector<at::Tensor> arguments;
  std::vector<at::Tensor*> temporaries; // among the arguments
  std::vector<at::Tensor*> readers;     // where the result goes, in steps to come
};

class eager_executor final : public executor {
public:
  eager_executor(mode_input const& in, stream& s, at::Tensor input);
  void submit() override;
  void drop() override { output_.reset(); }
  at::Tensor output() const override { return output_; }

private:
  std::vector<step> steps_;
  at::Tensor output_;
};

void eager_executor::submit() {
  for (auto& s : steps_) {
    auto result = s.what->eager(s.arguments);
    for (auto* const temporary : s.temporaries) temporary->reset();
    for (std::size_t i = 0; i + 1 < s.readers.size(); ++i) *s.readers[i] = result;
    *s.readers.back() = std::move(result);
  }
}

eager_executor::eager_executor(mode_input const& in, stream& s, at::Tensor input) : executor(s) {
  auto const& p = in.prog;
  std::vector<std::vector<at::Tensor*>> readers(p.values.size());
  steps_.reserve(p.ops.size());
  for (auto const& op : p.ops) {
    auto& made = steps_.emplace_back(step{&op, std::vector<at::Tensor>(op.in.size()), {}, {}});
    for (std::size_t i = 0; i < op.in.size(); ++i) {
      auto const role = p.values[op.in[i]].role;
      auto& argument = made.arguments[i];
      if (role == value_role::weight) argument = in.weights[op.in[i]];
      if (role == value_role::input) argument = input;
      if (role != value_role::temporary) continue;
      made.temporaries.push_back(&argument);
      readers[op.in[i]].push_back(&argument);
    }
  }
  if (auto const result = p.output()) readers[*result].push_back(&output_);
  for (auto& made : steps_) made.readers = std::move(readers[made.what->out]);
}

class eager final : public prepared_mode {
public:
  explicit eager(mode_input const& in) : in_(in) {}
  std::unique_ptr<executor> make_executor(stream& s, at::Tensor input) override {
    return std::make_unique<eager_executor>(in_, s, std::move(input));
  }

private:
  mode_input in_;
};

} // namespace

std::unique_ptr<prepared_mode> prepare_eager(mode_input const& in) { return std::make_unique<eager>(in); }

} // namespace plateau
