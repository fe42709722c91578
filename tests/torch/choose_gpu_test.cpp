// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"
#include "worker/device/choose_gpu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

gpu_choice among(std::vector<std::string> uuids, std::int64_t local_rank, std::int64_t local_size) {
  return {std::move(uuids), local_rank, local_size, "node7", "", ""};
}

TEST(the_choice_of_a_gpu, is_the_local_rank_s_own_when_every_rank_sees_all) {
  EXPECT_EQ(choose_gpu(among({"GPU-a", "GPU-b", "GPU-c"}, 0, 3)), 0);
  EXPECT_EQ(choose_gpu(among({"GPU-a", "GPU-b", "GPU-c"}, 2, 3)), 2);
  EXPECT_EQ(choose_gpu(among({"GPU-a", "GPU-b", "GPU-c"}, 1, 2)), 1);
}

TEST(the_choice_of_a_gpu, is_the_launcher_s_when_each_rank_sees_one) {
  EXPECT_EQ(choose_gpu(among({"GPU-d"}, 3, 4)), 0);
}

TEST(the_choice_of_a_gpu, names_host_list_and_devices_when_there_are_too_few) {
  auto few = among({"GPU-a", "GPU-b"}, 2, 3);
  few.visible_list = "4,5";
  EXPECT_THAT(
      [&] { choose_gpu(few); },
      ThrowsMessage<input_error>("3 ranks on node7 see 2 CUDA devices (CUDA_VISIBLE_DEVICES=4,5: GPU-a, GPU-b); "
                                 "start at most one rank for each device, or show each rank one device"));
}

TEST(the_choice_of_a_gpu, says_what_cuda_says_when_there_is_none) {
  auto none = among({}, 0, 1);
  EXPECT_THAT([&] { choose_gpu(none); }, ThrowsMessage<input_error>(AllOf(
                                             HasSubstr("node7 (CUDA_VISIBLE_DEVICES is not set)"), HasSubstr("cpu"))));
  none.cuda_says = "driver too old";
  EXPECT_THAT([&] { choose_gpu(none); }, ThrowsMessage<input_error>(HasSubstr("; CUDA says: driver too old)")));
}

} // namespace
} // namespace plateau
