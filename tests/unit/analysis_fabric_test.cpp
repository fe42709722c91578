// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t mib = 1 << 20;

// Ranks two to a host, each with a GPU of its own.
std::vector<rank_info> ranks_with_gpus(std::int64_t world) {
  std::vector<rank_info> ranks;
  for (std::int64_t r = 0; r < world; ++r) {
    auto const host = "node" + std::to_string(r / 2);
    rank_info info{r, host, host + "/boot", r % 2, 2, "0-3", device_info{}};
    info.device->kind = "cuda";
    info.device->uuid = "GPU-" + std::to_string(r % 2); // of no two GPUs of a host
    ranks.push_back(info);
  }
  return ranks;
}

fabric_on_rank healthy(std::int64_t rank) {
  fabric_on_rank on{rank, "node" + std::to_string(rank / 2), nccl_info{"2.28.9", "libnccl.so.2", {}, {}}, {}};
  on.result.used_before = 100 * mib;
  on.result.used_last = (600 + rank) * mib;
  on.result.all_reduces = {{mib, 10, 10 * mib}, {128 * mib, 20, 20 * 128 * mib / (100 - rank)}};
  return on;
}
std::vector<fabric_on_rank> healthy_ranks(std::int64_t world) {
  std::vector<fabric_on_rank> all;
  for (std::int64_t r = 0; r < world; ++r) all.push_back(healthy(r));
  return all;
}
void fail(fabric_on_rank& on, fabric_step step, std::string const& reason) {
  on.result.failure = fabric_failure{step, reason};
}

TEST(fabric, is_there_when_each_of_several_ranks_has_a_gpu_of_its_own) {
  EXPECT_EQ(why_no_fabric(ranks_with_gpus(2)), "");
  EXPECT_EQ(why_no_fabric(ranks_with_gpus(4)), "") << "the same UUID on another host is another GPU";
}

TEST(fabric, is_not_there_on_one_rank_without_gpus_or_on_a_shared_or_pretend_one) {
  EXPECT_EQ(why_no_fabric(ranks_with_gpus(1)), "there is one rank alone");
  auto ranks = ranks_with_gpus(4);
  ranks[3].device->uuid = "GPU-0";
  EXPECT_EQ(why_no_fabric(ranks), "ranks 2 and 3 on node1 share the GPU GPU-0");
  ranks[2].device->pretended = true;
  EXPECT_EQ(why_no_fabric(ranks), "the GPU of rank 2 on node1 is a pretend one");
  ranks[1].device->kind = "cpu";
  EXPECT_EQ(why_no_fabric(ranks), "rank 1 on node0 has no GPU");
  ranks[1].device.reset();
  EXPECT_EQ(why_no_fabric(ranks), "the worker of rank 1 on node0 did not come up");
  ranks[0].device->uuid.reset();
  EXPECT_EQ(why_no_fabric(ranks), "the GPU of rank 0 on node0 does not tell its UUID");
}

TEST(fabric, passes_when_every_rank_says_so) {
  auto const record = judge_fabric(healthy_ranks(2));
  EXPECT_EQ(record.status, fabric_status::passed);
  EXPECT_EQ(record.reason, "");
  EXPECT_EQ(record.ranks.size(), 2u);
}

TEST(fabric, names_the_ranks_that_failed_with_their_hosts_and_each_reason_once) {
  auto all = healthy_ranks(5);
  for (std::size_t const r : {0u, 1u, 2u, 4u}) fail(all[r], fabric_step::reducing, "not done in time");
  fail(all[3], fabric_step::initialising, "No route to host");
  auto const record = judge_fabric(all);
  EXPECT_EQ(record.status, fabric_status::failed);
  EXPECT_THAT(record.reason, HasSubstr("ranks 0-1 on node0, rank 2 on node1, rank 4 on node2: not done in time; "
                                       "rank 3 on node1: No route to host; no NCCL_* variable is set; look at the "
                                       "interface between the hosts (NCCL_SOCKET_IFNAME"));
}

TEST(fabric, names_the_settings_in_effect_and_on_which_ranks) {
  auto all = healthy_ranks(3);
  for (auto& on : all) on.nccl->settings["NCCL_IB_DISABLE"] = "1";
  all[1].nccl->settings["NCCL_SOCKET_IFNAME"] = "eth7";
  all[1].nccl->settings["/etc/nccl.conf"] = "is read by NCCL, too";
  fail(all[0], fabric_step::initialising, "not ready");
  EXPECT_THAT(judge_fabric(all).reason,
              HasSubstr("in effect: NCCL_IB_DISABLE=1, /etc/nccl.conf is read by NCCL, too (rank 1), "
                        "NCCL_SOCKET_IFNAME=eth7 (rank 1)"));
}

TEST(fabric, sends_the_user_to_the_links_when_a_sum_is_wrong) {
  auto all = healthy_ranks(2);
  fail(all[1], fabric_step::comparing, "25 instead of 24");
  EXPECT_THAT(judge_fabric(all).reason, AllOf(HasSubstr("rank 1 on node0: 25 instead of 24"), HasSubstr("nvlink"),
                                              Not(HasSubstr("rank 0")), Not(HasSubstr("SOCKET"))));
}

TEST(fabric, fails_when_ranks_have_different_versions_of_nccl) {
  auto all = healthy_ranks(4);
  all[2].nccl = nccl_info{"2.19.3", "/opt/lib/libnccl.so.2", {}, {}};
  auto const record = judge_fabric(all);
  EXPECT_EQ(record.status, fabric_status::failed);
  EXPECT_THAT(record.reason, AllOf(HasSubstr("ranks 0-1 on node0, rank 3 on node1: NCCL 2.28.9 from libnccl.so.2"),
                                   HasSubstr("rank 2 on node1: NCCL 2.19.3 from /opt/lib/libnccl.so.2"),
                                   HasSubstr("LD_LIBRARY_PATH")));
}

TEST(fabric, has_the_bandwidths_of_nccl_tests) {
  // 128 MiB in 1 ms: 134.2 GB/s; on 8 ranks 7/4 of that cross each link
  auto const reached = bandwidth_of({128 * mib, 20, 20'000'000}, 8);
  ASSERT_TRUE(reached);
  EXPECT_NEAR(reached->algorithm, 134.217728, 1e-9);
  EXPECT_NEAR(reached->bus, 134.217728 * 7 / 4, 1e-9);
  EXPECT_NEAR(bandwidth_of({128 * mib, 20, 20'000'000}, 2)->bus, 134.217728, 1e-9);
}

TEST(fabric, has_no_bandwidth_where_there_is_none) {
  EXPECT_FALSE(bandwidth_of({mib, 20, 1000}, 1)) << "no byte crosses a link";
  EXPECT_FALSE(bandwidth_of({mib, 20, 0}, 2));
  EXPECT_FALSE(bandwidth_of({mib, 0, 1000}, 2));
}

TEST(fabric, is_as_fast_as_its_slowest_rank_and_takes_what_the_greediest_does) {
  auto const record = judge_fabric(healthy_ranks(3));
  auto const totals = totals_of(record);
  ASSERT_EQ(totals.sizes.size(), 2u);
  EXPECT_EQ(totals.sizes[1].bytes, 128 * mib);
  EXPECT_EQ(totals.sizes[1].rank, 2);
  EXPECT_NEAR(totals.sizes[1].slowest.algorithm, 98, 1e-6);
  EXPECT_EQ(totals.nccl_bytes, 502 * mib);
  EXPECT_EQ(told(record), "fabric: NCCL 2.28.9, all-reduce of 128 MiB at 130.7 GB/s bus bandwidth (slowest: rank 2), "
                          "NCCL takes 502 MiB of each GPU");
}

TEST(fabric, has_no_figure_that_a_rank_did_not_get_to) {
  auto all = healthy_ranks(2);
  all[1].result.all_reduces.pop_back();
  all[0].result.used_last.reset();
  all[1].result.used_before.reset();
  fail(all[1], fabric_step::reducing, "broken");
  auto const entry = fabric_entry(judge_fabric(all));
  EXPECT_EQ(entry["all_reduce"].size(), 1u);
  EXPECT_TRUE(entry["nccl_bytes"].is_null());
  EXPECT_EQ(entry["status"], "failed");
  EXPECT_THAT(entry["told"].get<std::string>(), HasSubstr("fabric: failed: rank 1 on node0: broken"));
}

} // namespace
} // namespace plateau
