// SPDX-License-Identifier: Apache-2.0
#include "worker/output_check.hpp"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace plateau;

TEST(output_check, measures_an_error_relative_to_the_reference) {
  auto const e = distance({3, 4, 0.5}, {3, 4, 0});
  EXPECT_DOUBLE_EQ(e.relative_l2, 0.1);
  EXPECT_DOUBLE_EQ(e.relative_max, 0.125);
}

TEST(output_check, finds_no_error_where_there_is_none) {
  EXPECT_EQ(distance({1, -2}, {1, -2}).relative_l2, 0);
  EXPECT_EQ(distance({0, 0}, {0, 0}).relative_max, 0); // not 0 / 0
}

TEST(output_check, never_accepts_what_is_not_finite) {
  for (double const bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    auto const e = distance({1, bad}, {1, 1});
    EXPECT_GT(e.relative_l2, 1e300);
    EXPECT_GT(e.relative_max, 1e300);
  }
}

TEST(output_check, never_accepts_an_output_of_another_size) { EXPECT_GT(distance({1}, {1, 1}).relative_l2, 1e300); }

TEST(output_check, accepts_of_each_dtype_what_it_can_hold) {
  job j;
  j.device = "cpu";
  j.dtype = "torch.float32";
  EXPECT_EQ(output_tolerance(j), 1e-5);
  j.allow_tf32 = true; // a matter of GPUs
  EXPECT_EQ(output_tolerance(j), 1e-5);
  j.device = "cuda";
  EXPECT_EQ(output_tolerance(j), 2e-3);
  j.dtype = "float16";
  EXPECT_EQ(output_tolerance(j), 2e-3);
  j.dtype = "bfloat16";
  EXPECT_EQ(output_tolerance(j), 1.6e-2);
}

TEST(output_check, copies_elements_in_order_and_digests_the_bytes) {
  auto const a = copy_output(at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({2, 2}));
  auto const transposed = copy_output(at::tensor({1.0f, 3.0f, 2.0f, 4.0f}).view({2, 2}).t());
  EXPECT_EQ(a.elements, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(transposed.elements, a.elements);
  EXPECT_EQ(transposed.digest, a.digest);
  EXPECT_EQ(a.digest.size(), 8u);
  EXPECT_NE(copy_output(at::tensor({1.0f, 2.0f, 3.0f, -4.0f})).digest, a.digest);
}

} // namespace
