// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/attribution.hpp"
#include "worker/memory/cpu_allocator.hpp"

#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace plateau {
namespace {

using testing::ElementsAre;

class attribution_of_ops : public testing::Test {
protected:
  cpu_allocator& allocator = install_cpu_allocator();
  c10::InferenceMode inference;
  at::Tensor x = at::ones({4, 64}), weight = at::ones({64, 64}), bias = at::ones({64});

  at::Tensor request() const { return at::layer_norm(at::gelu(at::linear(x, weight, bias)), {64}, bias, bias); }
};

op_events find(std::vector<op_events> const& ops, std::string const& path) {
  auto const found = std::find_if(ops.begin(), ops.end(), [&](op_events const& o) { return o.op == path; });
  return found == ops.end() ? op_events{} : *found;
}

void expect_sums(std::vector<op_events> const& ops, counters const& before, counters const& after) {
  op_events sum;
  for (op_events const& part : ops) {
    sum.allocation_events += part.allocation_events;
    sum.allocated_bytes += part.allocated_bytes;
    sum.free_events += part.free_events;
    sum.freed_bytes += part.freed_bytes;
  }
  EXPECT_EQ(sum.allocation_events, after.allocation_events - before.allocation_events);
  EXPECT_EQ(sum.free_events, after.free_events - before.free_events);
  EXPECT_EQ(sum.allocated_bytes - sum.freed_bytes, after.allocated_bytes - before.allocated_bytes);
}

TEST_F(attribution_of_ops, names_the_path_of_operators_and_books_a_free_on_the_one_that_allocated) {
  request();
  start_tracking();
  {
    op_tracker const tracker;
    at::linear(x, weight, bias); // dropped here, by no operator
  }
  auto const ops = stop_tracking();
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].op, "aten::linear/aten::addmm");
  EXPECT_EQ(ops[0].allocation_events, 1);
  EXPECT_EQ(ops[0].allocated_bytes, 4 * 64 * 4);
  EXPECT_EQ(ops[0].free_events, 1);
  EXPECT_EQ(ops[0].freed_bytes, 4 * 64 * 4);
}

TEST_F(attribution_of_ops, books_the_free_of_an_older_block_on_none) {
  auto older = std::make_optional(request());
  start_tracking();
  older.reset();
  auto const ops = stop_tracking();
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].op, "");
  EXPECT_EQ(ops[0].free_events, 1);
}

TEST_F(attribution_of_ops, tells_what_an_operator_keeps) {
  request();
  std::vector<at::Tensor> kept;
  start_tracking();
  {
    op_tracker const tracker;
    for (int i = 0; i < 3; ++i) kept.push_back(at::gelu(request()));
  }
  for (auto const& op : stop_tracking())
    EXPECT_EQ(op.allocated_bytes - op.freed_bytes, op.op == "aten::gelu" ? 3 * 4 * 64 * 4 : 0) << op.op;
}

TEST_F(attribution_of_ops, names_a_scope_that_is_no_operator_after_its_own_name_is_gone) {
  std::vector<at::Tensor> kept;
  start_tracking();
  {
    op_tracker const tracker;
    for (std::string const name :
         {"user::first_scope_of_some_length", "user::other_scope_of_some_length", "user::first_scope_of_some_length"}) {
      RECORD_FUNCTION(name, c10::ArrayRef<c10::IValue>());
      kept.push_back(at::ones({64}));
    }
  }
  auto const ops = stop_tracking();
  auto const events_under = [&](std::string const& scope) {
    std::int64_t sum = 0;
    for (op_events const& part : ops) sum += part.op.starts_with(scope + "/") ? part.allocation_events : 0;
    return sum;
  };
  EXPECT_EQ(events_under("user::first_scope_of_some_length"), 2);
  EXPECT_EQ(events_under("user::other_scope_of_some_length"), 1);
}

TEST_F(attribution_of_ops, tells_operators_apart_inside_others) {
  request();
  start_tracking();
  {
    op_tracker const tracker;
    request();
  }
  auto const ops = stop_tracking();
  EXPECT_EQ(find(ops, "aten::layer_norm/aten::native_layer_norm/aten::empty").allocation_events, 3);
  EXPECT_EQ(find(ops, "aten::gelu").allocation_events, 1);
}

TEST_F(attribution_of_ops, adds_up_to_the_counters_over_threads_with_and_without_a_tracker) {
  request();
  auto const before = allocator.read();
  start_tracking();
  at::Tensor kept;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      c10::InferenceMode const inference_here;
      cpu_allocator::enter_stream(t);
      std::optional<op_tracker> tracker;
      if (t != 3) tracker.emplace();
      for (int i = 0; i < 200; ++i) request();
      if (t == 0) kept = request();
    });
  for (auto& t : threads) t.join();
  auto const ops = stop_tracking();
  auto const after = allocator.read();
  expect_sums(ops, before, after);
  EXPECT_EQ(find(ops, "aten::gelu").allocation_events, 601);
  EXPECT_GT(find(ops, "").allocation_events, 0) << "the thread without a tracker";
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end(), [](auto& a, auto& b) { return a.op < b.op; }));
}

TEST_F(attribution_of_ops, books_nothing_while_tracking_is_off) {
  start_tracking();
  EXPECT_THAT(stop_tracking(), ElementsAre());
  op_tracker const tracker;
  request();
  start_tracking();
  EXPECT_THAT(stop_tracking(), ElementsAre()) << "what came before start_tracking is forgotten";
}

TEST_F(attribution_of_ops, counts_for_trackers_that_are_still_held) {
  op_tracker const tracker;
  for (int round = 0; round < 2; ++round) {
    start_tracking();
    request();
    EXPECT_EQ(find(stop_tracking(), "aten::gelu").allocation_events, 1) << round;
  }
}

TEST_F(attribution_of_ops, refuses_a_second_tracker_on_a_thread) {
  op_tracker const tracker;
  EXPECT_ANY_THROW(op_tracker{});
}

TEST_F(attribution_of_ops, leaves_no_trace_of_itself_in_the_counters) {
  start_tracking();
  {
    op_tracker const tracker;
    request();
  }
  auto const before = allocator.read();
  stop_tracking();
  EXPECT_EQ(allocator.read(), before);
}

} // namespace
} // namespace plateau
