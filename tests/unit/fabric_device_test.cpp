// SPDX-License-Identifier: Apache-2.0
// What the fabric check does with CUDA, on the pretend GPU: it keeps count of memory and gives what it is asked for,
// but it holds no values.
#include "worker/fabric/fabric_device.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace plateau {
namespace {

constexpr std::size_t floats = 32 << 20;
constexpr std::int64_t both_buffers = std::int64_t{2} * floats * sizeof(float);

TEST(fabric_device, takes_two_buffers_of_the_device_and_gives_them_back) {
  auto const other = open_cuda_fabric_device(1);
  auto const before = other->used_bytes();
  auto gpu = open_cuda_fabric_device(floats);
  EXPECT_EQ(gpu->used_bytes() - before, both_buffers);
  EXPECT_NE(gpu->contribution(), gpu->sum());
  gpu.reset();
  EXPECT_EQ(other->used_bytes(), before);
}

TEST(fabric_device, has_a_stream_of_its_own_that_is_idle_when_a_copy_returns) {
  auto const gpu = open_cuda_fabric_device(floats), other = open_cuda_fabric_device(1);
  ASSERT_NE(gpu->stream(), nullptr) << "not the default stream, which waits for the others";
  EXPECT_NE(gpu->stream(), other->stream());
  std::vector<float> values(floats, 1);
  gpu->set_contribution(values);
  gpu->clear_sum();
  gpu->get_sum(values);
  EXPECT_TRUE(gpu->idle());
}

TEST(fabric_device, tells_in_cudas_words_that_there_is_no_room) {
  constexpr auto too_many = std::size_t{1} << 44;
  try {
    open_cuda_fabric_device(too_many);
    FAIL();
  } catch (std::runtime_error const& e) {
    EXPECT_EQ(std::string(e.what()).find("cudaMalloc: "), 0u) << e.what();
  }
}

} // namespace
} // namespace plateau
