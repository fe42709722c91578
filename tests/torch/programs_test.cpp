// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/cpu_allocator.hpp"
#include "worker/programs/program.hpp"

#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

job small_job() {
  job j;
  j.dtype = "float32";
  j.hidden = 32, j.batch = 3, j.seq_len = 7;
  return j;
}

TEST(a_program, has_the_same_weights_on_every_rank_and_inputs_of_each_thread_s_own) {
  c10::InferenceMode const inference;
  auto const j = small_job();
  auto const p = program_named("encoder_block").make(j);
  auto const a = make_weights(p, j, at::kCPU), b = make_weights(p, j, at::kCPU);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(!a[i].defined() || at::equal(a[i], b[i])) << p.values[i].name;
  auto const x = make_input(p, j, at::kCPU, 1, 2);
  EXPECT_TRUE(at::equal(x, make_input(p, j, at::kCPU, 1, 2)));
  EXPECT_FALSE(at::equal(x, make_input(p, j, at::kCPU, 2, 1)));
  auto other = j;
  other.random_seed = 1;
  EXPECT_FALSE(at::equal(x, make_input(p, other, at::kCPU, 1, 2)));
}

TEST(a_program, rounds_the_same_numbers_to_every_dtype) {
  c10::InferenceMode const inference;
  auto j = small_job();
  auto const p = program_named("encoder_block").make(j);
  auto const exact = make_input(p, j, at::kCPU, 0, 0);
  j.dtype = "torch.float16";
  EXPECT_TRUE(at::equal(make_input(p, j, at::kCPU, 0, 0), exact.to(at::kHalf)));
}

TEST(a_program, leaves_torch_s_random_numbers_alone) {
  c10::InferenceMode const inference;
  auto const j = small_job();
  auto const p = program_named("encoder_block").make(j);
  at::manual_seed(7);
  auto const undisturbed = at::rand({4});
  at::manual_seed(7);
  make_weights(p, j, at::kCPU);
  EXPECT_TRUE(at::equal(undisturbed, at::rand({4})));
}

TEST(a_program, is_counted_with_its_weights_and_nothing_else) {
  auto& allocator = install_cpu_allocator();
  c10::InferenceMode const inference;
  auto const j = small_job();
  auto const p = program_named("encoder_block").make(j);
  auto const before = allocator.read();
  auto const weights = make_weights(p, j, at::kCPU);
  EXPECT_EQ(allocator.read().allocation_events - before.allocation_events, 6);
  auto const x = make_input(p, j, at::kCPU, 0, 0);
  EXPECT_EQ(allocator.read().allocation_events - before.allocation_events, 7);
  EXPECT_EQ(allocator.read().free_events - before.free_events, 0);
  EXPECT_EQ(reference_output(p, weights, x).scalar_type(), at::kDouble);
  EXPECT_EQ(allocator.read().allocation_events - before.allocation_events, 7) << "the reference leaves no trace";
}

TEST(a_program, is_refused_by_a_name_that_nobody_knows) { EXPECT_THROW(program_named("resnet"), input_error); }

} // namespace
} // namespace plateau
