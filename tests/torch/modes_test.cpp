// SPDX-License-Identifier: Apache-2.0
#include "tests/torch/modes_support.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace plateau {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::map<std::string, double> const tolerance{{"float32", 1e-5}, {"float16", 2e-3}, {"bfloat16", 1.6e-2}};

at::Tensor result_of(executor& e) {
  e.submit();
  e.wait();
  auto result = e.output();
  if (result.defined()) {
    unmeasured const no_trace;
    result = result.clone();
  }
  e.drop();
  return result;
}

struct events {
  std::int64_t allocations, frees;
  bool operator==(events const&) const = default;
};

// Of one request, when it is no longer the first.
events events_of(ready_case& c) {
  result_of(*c.executors[0]);
  auto const before = c.dev.read_counters();
  c.executors[0]->submit();
  c.executors[0]->wait();
  c.executors[0]->drop();
  auto const after = c.dev.read_counters();
  return {after.allocation_events - before.allocation_events, after.free_events - before.free_events};
}

class in_each_dtype : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(a_mode, in_each_dtype, ::testing::Values("float32", "float16", "bfloat16"),
                         [](auto const& dtype) { return dtype.param; });

TEST_P(in_each_dtype, computes_the_program_whatever_the_mode) {
  for (auto const* const mode : {"eager", "arena", "arena_planned"})
    for (bool const in_place : {false, true}) {
      auto j = small_job(GetParam());
      j.use_inplace_residual = in_place;
      ready_case c(j, mode, 2);
      for (std::size_t t = 0; t < 2; ++t) {
        auto const result = result_of(*c.executors[t]);
        EXPECT_TRUE(at::isfinite(result).all().item<bool>());
        EXPECT_LT(error_of(result, reference_output(c.prog, c.weights, c.inputs[t])), tolerance.at(GetParam()))
            << mode << ", thread " << t << (in_place ? ", in place" : "");
      }
    }
}

TEST_P(in_each_dtype, eager_frees_what_it_allocates_and_holds_nothing_between_requests) {
  ready_case c(small_job(GetParam()), "eager");
  auto const e = events_of(c);
  EXPECT_EQ(e.allocations, e.frees);
}

TEST_P(in_each_dtype, eager_s_peak_is_that_of_code_which_drops_each_value_after_its_last_use) {
  ready_case c(small_job(GetParam()), "eager");
  result_of(*c.executors[0]);
  auto const idle = c.dev.read_counters().allocated_bytes;
  c.dev.reset_peak();
  {
    auto const& v = c.weights;
    auto y = c.prog.ops[0].eager(std::vector{c.inputs[0], v[1], v[2]});
    y = c.prog.ops[1].eager(std::vector{std::exchange(y, {})});
    y = c.prog.ops[2].eager(std::vector{std::exchange(y, {}), v[3], v[4]});
    y = c.prog.ops[3].eager(std::vector{std::exchange(y, {}), c.inputs[0]});
    y = c.prog.ops[4].eager(std::vector{std::exchange(y, {}), v[5], v[6]});
    y = c.prog.ops[5].eager(std::vector{std::exchange(y, {})});
    y = c.prog.ops[6].eager(std::vector{std::exchange(y, {})});
  }
  auto const users = c.dev.read_counters().peak_allocated_bytes - idle;
  c.dev.reset_peak();
  result_of(*c.executors[0]);
  EXPECT_EQ(c.dev.read_counters().peak_allocated_bytes - idle, users);
}

// Where the CPU lets oneDNN multiply a half type, that takes scratch from the allocator.
bool onednn_multiplies(std::string const& type) {
  auto const op = "mkldnn::_is_mkldnn_" + type + "_supported";
  return c10::Dispatcher::singleton().findSchemaOrThrow(op.c_str(), "").typed<bool()>().call();
}

TEST(eager, takes_as_many_allocator_events_as_torch_is_known_to_take) {
  std::map<std::string, std::int64_t> known{{"float32", 11}, {"bfloat16", onednn_multiplies("bf16") ? 15 : 13}};
  if (!onednn_multiplies("fp16")) known["float16"] = 13; // with it: not met yet
  for (auto const& [dtype, events] : known) {
    ready_case c(small_job(dtype), "eager");
    EXPECT_EQ(events_of(c).allocations, events) << dtype;
  }
}

TEST(arena, takes_no_allocator_event_and_gives_eager_s_bits_in_float32) {
  for (bool const in_place : {false, true}) {
    auto j = small_job();
    j.use_inplace_residual = in_place;
    ready_case eager(j, "eager"), arena(j, "arena");
    EXPECT_EQ(events_of(arena), (events{0, 0}));
    EXPECT_TRUE(at::equal(result_of(*eager.executors[0]), result_of(*arena.executors[0])));
    EXPECT_EQ(arena.mode->arena_kind(), "planned");
  }
}

TEST(arena, takes_one_block_for_each_stream_thread_smaller_than_its_values_together) {
  auto const j = small_job();
  ready_case const one(j, "arena", 1);
  auto const at_one = one.dev.read_counters();
  ready_case const three(j, "arena", 3);
  auto const at_three = three.dev.read_counters();
  auto const tokens = j.batch * j.seq_len;
  auto const values = 4 * (2 * tokens * 4 * j.hidden + 3 * tokens * j.hidden);
  auto const weights = 4 * (8 * j.hidden * j.hidden + 8 * j.hidden);
  auto const inputs = 4 * 3 * tokens * j.hidden;
  EXPECT_LT(at_three.allocated_bytes - at_one.allocated_bytes - weights - inputs, 3 * values);
}

TEST(noop, is_an_empty_request_in_eager_and_arena) {
  auto j = small_job();
  j.workload = "noop";
  for (auto const* const mode : {"eager", "arena"}) {
    ready_case c(j, mode);
    EXPECT_EQ(events_of(c), (events{0, 0})) << mode;
    EXPECT_FALSE(result_of(*c.executors[0]).defined());
  }
}

TEST(noop, has_no_compiled_form) {
  auto j = small_job();
  j.workload = "noop";
  EXPECT_THAT([&] { ready_case(j, "compiled"); }, ThrowsMessage<unsupported>(HasSubstr("noop has no compiled form")));
}

TEST(arena_graph, is_not_possible_on_a_cpu_and_says_so) {
  EXPECT_THAT([] { ready_case(small_job(), "arena_graph"); }, ThrowsMessage<unsupported>(HasSubstr("CUDA graphs")));
}

} // namespace
} // namespace plateau
