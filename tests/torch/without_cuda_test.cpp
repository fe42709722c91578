// SPDX-License-Identifier: Apache-2.0
// The devices as a build without CUDA has them: with no_cuda.cpp in the place of cuda.cpp.
#include "schemas/error.hpp"
#include "worker/device/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

TEST(a_build_without_cuda, refuses_cuda_and_says_what_to_do) {
  EXPECT_THAT([] { open_device({.wanted = "cuda"}); },
              testing::ThrowsMessage<input_error>(
                  testing::AllOf(testing::HasSubstr("built without CUDA"), testing::HasSubstr("PLATEAU_CUDA=ON"))));
}

TEST(a_build_without_cuda, takes_the_cpu_when_it_may_choose) {
  EXPECT_EQ(open_device({.wanted = "auto"}).dev->info().kind, "cpu");
}

TEST(a_build_without_cuda, refuses_what_is_no_device) {
  EXPECT_THAT([] { open_device({.wanted = "tpu"}); },
              testing::ThrowsMessage<input_error>(testing::HasSubstr("auto, cuda or cpu")));
}

} // namespace
} // namespace plateau
