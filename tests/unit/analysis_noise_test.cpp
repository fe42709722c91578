// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/noise.hpp"

#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

namespace plateau {
namespace {

using testing::IsEmpty;

/// A run with three repeats of two modes at two levels, in which every repeat measured the same.
struct noise : testing::Test {
  job j = [] {
    auto out = synthetic_job();
    out.repeats = 3;
    return out;
  }();
  run_record run{synthetic_info(j, 2), j, {}, {}};
  std::vector<case_latencies> latencies;

  noise() {
    for (auto const& id : cases_of(j)) {
      auto& record = run.cases.emplace_back(case_record{id, {}});
      for (std::int64_t rank = 0; rank < 2; ++rank) record.by_rank.push_back(synthetic_result(run.info, j, id, rank));
      for (auto& result : record.by_rank) result->measured->wall_ns = 1'000'000'000;
      latencies.emplace_back().pooled =
          summarise(std::vector<std::vector<std::int64_t>>{std::vector<std::int64_t>(80, 400'000)});
    }
  }

  std::size_t place(std::string const& id) {
    return static_cast<std::size_t>(std::ranges::find(run.cases, id, [](auto const& c) { return c.id.text(); }) -
                                    run.cases.begin());
  }
};

TEST_F(noise, equal_repeats_have_none) {
  auto const floors = noise_floors(run, latencies);
  ASSERT_EQ(floors.size(), 4u);
  for (auto const& f : floors) {
    EXPECT_EQ(f.repeats, 3);
    EXPECT_EQ(f.p50_spread, 0);
    EXPECT_EQ(f.throughput_spread, 0);
  }
}

TEST_F(noise, is_the_largest_over_the_smallest_of_the_repeats_less_one) {
  latencies[place("eager.c2.r2")].pooled->at[0].value *= 1.05;
  run.cases[place("arena.c3.r1")].by_rank[1]->measured->wall_ns *= 2; // the longest rank counts
  auto const floors = noise_floors(run, latencies);
  EXPECT_EQ(floors[0].mode, "eager");
  EXPECT_EQ(floors[0].concurrency, 2);
  EXPECT_NEAR(floors[0].p50_spread, 0.05, 1e-12);
  EXPECT_EQ(floors[0].throughput_spread, 0);
  EXPECT_EQ(floors[3].mode, "arena");
  EXPECT_NEAR(floors[3].throughput_spread, 1, 1e-12);
  EXPECT_EQ(told(floors), "repeats of one case differ by up to 5.0% in p50 (eager.c2) and 100.0% in throughput "
                          "(arena.c3): smaller differences between two cases of this run are noise");
}

TEST_F(noise, repeats_that_a_rank_did_not_pass_do_not_count) {
  run.cases[place("eager.c2.r2")].by_rank[1].reset();
  EXPECT_EQ(noise_floors(run, latencies)[0].repeats, 2);
  run.cases[place("eager.c2.r3")].by_rank[0].reset();
  auto const floors = noise_floors(run, latencies);
  ASSERT_EQ(floors.size(), 3u);
  EXPECT_EQ(floors[0].concurrency, 3);
}

TEST_F(noise, without_repeats_nothing_is_said) {
  run.cases.resize(4);
  EXPECT_THAT(noise_floors(run, latencies), IsEmpty());
  EXPECT_EQ(told(noise_floors(run, latencies)), "");
}

} // namespace
} // namespace plateau
