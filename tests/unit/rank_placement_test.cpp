// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace plateau {
namespace {

rank_info on(std::int64_t rank, std::string const& host, std::optional<std::string> uuid,
             std::optional<std::string> visible_list = {}) {
  rank_info r;
  r.rank = rank;
  r.host = host;
  r.host_id = host + "/boot";
  r.device.emplace().kind = uuid ? "cuda" : "cpu";
  r.device->uuid = std::move(uuid);
  r.device->visible_list = std::move(visible_list);
  return r;
}

TEST(shared_gpus, are_none_where_each_rank_has_one_of_its_own) {
  EXPECT_EQ(shared_gpus(std::vector<rank_info>{}), "");
  EXPECT_EQ(shared_gpus(std::vector{on(0, "a", "GPU-0"), on(1, "a", "GPU-1"), on(2, "b", "GPU-2")}), "");
}

TEST(shared_gpus, are_named_with_ranks_host_uuid_and_what_each_rank_sees) {
  EXPECT_EQ(shared_gpus(std::vector{on(0, "a", "GPU-0", "0"), on(1, "a", "GPU-1", "1"), on(2, "a", "GPU-0", "0,1"),
                                    on(3, "a", "GPU-0")}),
            "ranks 0,2-3 on a have the same GPU GPU-0 (rank 0: CUDA_VISIBLE_DEVICES=0, rank 2: "
            "CUDA_VISIBLE_DEVICES=0,1, rank 3: CUDA_VISIBLE_DEVICES is not set)");
}

TEST(shared_gpus, are_all_named) {
  auto const told =
      shared_gpus(std::vector{on(0, "a", "GPU-0"), on(1, "a", "GPU-1"), on(2, "a", "GPU-1"), on(3, "a", "GPU-0")});
  EXPECT_THAT(told, testing::AllOf(testing::StartsWith("ranks 0,3 on a"), testing::HasSubstr(", ranks 1-2 on a")));
}

TEST(shared_gpus, are_a_matter_of_one_host) {
  EXPECT_EQ(shared_gpus(std::vector{on(0, "a", "GPU-0"), on(1, "b", "GPU-0")}), "");
  auto twin = on(1, "a", "GPU-0");
  twin.host_id = "a/another boot";
  EXPECT_EQ(shared_gpus(std::vector{on(0, "a", "GPU-0"), twin}), "") << "another host of the same name";
}

TEST(shared_gpus, are_none_of_ranks_without_a_gpu_or_without_a_worker) {
  auto lost = on(2, "a", {});
  lost.device.reset();
  EXPECT_EQ(shared_gpus(std::vector{on(0, "a", {}), on(1, "a", {}), lost}), "");
}

} // namespace
} // namespace plateau
