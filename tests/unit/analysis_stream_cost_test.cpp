// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/stream_cost.hpp"

#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t mib = 1 << 20;

/// A run of one mode in which every rank reserves 40 MiB and 8 MiB per stream of a device of 1 GiB.
struct stream_costs_of_run : testing::Test {
  job j = synthetic_job();
  run_record run;

  void measure(std::vector<std::int64_t> const& levels, std::int64_t world) {
    j.modes = {"eager"};
    j.concurrency_levels = levels;
    run = {synthetic_info(j, world), j, {}, {}};
    for (auto& rank : run.info.ranks) rank.device->kind = "cuda";
    for (auto& rank : run.info.ranks) rank.device->uuid = "GPU-" + std::to_string(rank.rank);
    for (auto const& id : cases_of(j)) {
      auto& record = run.cases.emplace_back(case_record{id, {}});
      for (std::int64_t rank = 0; rank < world; ++rank) {
        auto& m = *record.by_rank.emplace_back(synthetic_result(run.info, j, id, rank))->measured;
        for (auto* c : {&m.pre, &m.post}) c->reserved_bytes = (40 + 8 * id.concurrency) * mib;
        for (auto& point : m.soak) point.allocator.reserved_bytes = m.post.reserved_bytes;
      }
    }
  }
  measurement& measured(std::size_t level, std::size_t rank) { return *run.cases[level].by_rank[rank]->measured; }
};

TEST_F(stream_costs_of_run, two_levels_give_the_exact_line) {
  measure({2, 4}, 2);
  auto const costs = stream_costs_of(run);
  ASSERT_EQ(costs.modes.size(), 1u);
  auto const& c = costs.modes[0];
  EXPECT_EQ(c.bytes_per_stream, 8 * mib);
  EXPECT_EQ(c.bytes_at_none, 40 * mib);
  EXPECT_EQ(c.residual_bytes, 0);
  EXPECT_THAT(c.concurrency, ElementsAre(2, 4));
  EXPECT_THAT(c.reserved_bytes, ElementsAre(56 * mib, 72 * mib));
  EXPECT_EQ(c.capacity_bytes, 1021 * mib); // 3 MiB are outside
  EXPECT_EQ(c.most_streams, (1021 - 40) / 8);
  EXPECT_EQ(told(c), "eager: each stream adds 8 MiB to 40 MiB; c123 would not fit: 122 streams fill the 1021 MiB "
                     "that the allocator can have");
}

TEST_F(stream_costs_of_run, more_levels_give_least_squares_and_how_far_off_it_is) {
  measure({1, 2, 3, 4}, 1);
  measured(1, 0).post.reserved_bytes += 4 * mib;
  auto const c = stream_costs_of(run).modes[0];
  EXPECT_NEAR(c.bytes_per_stream / mib, 7.6, 1e-9); // numpy.polyfit([1, 2, 3, 4], [48, 60, 64, 72], 1)
  EXPECT_NEAR(c.bytes_at_none / mib, 42, 1e-9);
  EXPECT_NEAR(c.residual_bytes / mib, 2.8, 1e-9);
  EXPECT_THAT(told(c), HasSubstr("(give or take 2.8 MiB)"));
}

TEST_F(stream_costs_of_run, the_rank_and_the_quiet_point_that_need_most_decide) {
  measure({2, 4}, 3);
  measured(1, 2).soak[1].allocator.reserved_bytes = 200 * mib;
  measured(0, 1).soak[0].outside_bytes = 100 * mib;
  auto const c = stream_costs_of(run).modes[0];
  EXPECT_THAT(c.reserved_bytes, ElementsAre(56 * mib, 200 * mib));
  EXPECT_EQ(c.capacity_bytes, 924 * mib);
}

TEST_F(stream_costs_of_run, on_the_cpu_the_ranks_of_a_host_share_its_memory) {
  measure({2, 4}, 2);
  for (auto& rank : run.info.ranks) rank.device->kind = "cpu";
  for (auto& rank : run.info.ranks) rank.device->uuid.reset();
  EXPECT_EQ(stream_costs_of(run).modes[0].capacity_bytes, (512 - 3) * mib);
}

TEST_F(stream_costs_of_run, of_a_shared_gpu_no_capacity_is_claimed) {
  measure({2, 4}, 2);
  run.info.ranks[1].device->uuid = "GPU-0";
  auto const c = stream_costs_of(run).modes[0];
  EXPECT_FALSE(c.capacity_bytes);
  EXPECT_FALSE(c.most_streams);
  EXPECT_EQ(told(c), "eager: each stream adds 8 MiB to 40 MiB");
}

TEST_F(stream_costs_of_run, streams_that_reserve_nothing_cost_nothing) {
  measure({2, 4}, 1);
  measured(1, 0).post = measured(1, 0).pre = measured(0, 0).post;
  for (auto& point : measured(1, 0).soak) point.allocator = measured(0, 0).post;
  auto const c = stream_costs_of(run).modes[0];
  EXPECT_EQ(c.bytes_per_stream, 0);
  EXPECT_FALSE(c.most_streams);
  EXPECT_EQ(told(c), "eager: more streams cost no measurable memory, up to 4");
}

TEST_F(stream_costs_of_run, a_concurrency_that_was_measured_does_fit) {
  measure({2, 4}, 1);
  run.info.ranks[0].device->memory_bytes = 70 * mib;
  EXPECT_EQ(stream_costs_of(run).modes[0].most_streams, 4);
}

TEST_F(stream_costs_of_run, says_why_there_is_none) {
  measure({2}, 1);
  EXPECT_THAT(stream_costs_of(run).modes, IsEmpty());
  EXPECT_EQ(stream_costs_of(run).why_none, "no mode has counters at two levels of concurrency");
  measure({2, 4}, 1);
  run.run.isolation = "run";
  EXPECT_THAT(stream_costs_of(run).why_none, HasSubstr("use --isolation case"));
}

} // namespace
} // namespace plateau
