// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/across_ranks.hpp"

#include "orchestrator/analysis/outcome.hpp"

#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <random>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(rank_list, joins_neighbours) {
  EXPECT_EQ(rank_list(std::vector<std::int64_t>{3}), "rank 3");
  EXPECT_EQ(rank_list(std::vector<std::int64_t>{0, 1, 2, 5}), "ranks 0-2,5");
}

/// A case that all ranks passed alike; tests then make some of them odd.
struct unequal : testing::Test {
  job run = synthetic_job();

  case_record record_of(std::int64_t world) {
    case_record record{{"eager", 2, 0}, {}};
    for (std::int64_t rank = 0; rank < world; ++rank)
      record.by_rank.push_back(synthetic_result(synthetic_info(run, world), run, record.id, rank));
    return record;
  }
};

measurement& measured(case_record& record, std::size_t rank) { return *record.by_rank[rank]->measured; }

// A tensor that is kept in each soak window.
void leak(measurement& m) {
  for (std::size_t i = 1; i < m.soak.size(); ++i) {
    m.soak[i].allocator.allocated_bytes += 4096 * static_cast<std::int64_t>(i);
    m.soak[i].allocator.active_blocks += static_cast<std::int64_t>(i);
  }
}

TEST_F(unequal, ranks_that_did_the_same_give_no_finding) {
  EXPECT_THAT(unequal_counters(run, record_of(8)), IsEmpty());
}

TEST_F(unequal, the_odd_rank_is_named_with_the_first_point_and_all_its_counters_in_one_finding) {
  auto record = record_of(4);
  leak(measured(record, 2));
  auto const findings = unequal_counters(run, record);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].check, "unequal");
  EXPECT_THAT(findings[0].ranks, ElementsAre(2));
  EXPECT_EQ(findings[0].reason, "after soak window 1, allocated_bytes is 1052672 on rank 2 (1048576 on the others); "
                                "they differ too in active_blocks");
  auto const& first = findings[0].evidence["counters"][0];
  EXPECT_EQ(first["counter"], "allocated_bytes");
  EXPECT_EQ(first["usual"], 1048576);
  EXPECT_EQ(first["values"], json::parse(R"([{"value": 1052672, "ranks": [2]}])"));
}

TEST_F(unequal, of_two_ranks_neither_is_the_odd_one) {
  auto record = record_of(2);
  leak(measured(record, 1));
  auto const findings = unequal_counters(run, record);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(findings[0].reason, HasSubstr("allocated_bytes is 1048576 on rank 0, 1052672 on rank 1;"));
  EXPECT_FALSE(findings[0].evidence["counters"][0].contains("usual"));
}

TEST_F(unequal, different_causes_on_different_ranks_are_different_findings) {
  auto record = record_of(5);
  leak(measured(record, 1));
  measured(record, 4).post.alloc_retries = 1;
  auto const findings = unequal_counters(run, record);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
  EXPECT_THAT(findings[1].ranks, ElementsAre(4));
  EXPECT_THAT(findings[1].reason, HasSubstr("after the timed window, alloc_retries is 1 on rank 4 (0 on the others)"));
}

TEST_F(unequal, many_odd_values_are_told_shortly_and_kept_in_full) {
  auto record = record_of(12);
  for (std::size_t rank = 6; rank < 12; ++rank) measured(record, rank).pre.requested_bytes = 1000 * std::int64_t(rank);
  auto const findings = unequal_counters(run, record);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].reason, HasSubstr("8000 on rank 8, and so on (0 on the others)"));
  EXPECT_EQ(findings[0].evidence["counters"][0]["values"].size(), 6u);
}

TEST_F(unequal, peaks_may_differ) {
  auto record = record_of(3);
  measured(record, 1).post.peak_allocated_bytes += 512;
  EXPECT_THAT(unequal_counters(run, record), IsEmpty());
}

TEST_F(unequal, with_one_worker_for_all_cases_only_what_the_case_did_counts) {
  auto record = record_of(3);
  auto& m = measured(record, 1);
  for (auto* c : {&m.pre, &m.post}) c->allocation_events += 7;
  for (auto& point : m.soak) point.allocator.allocation_events += 7;
  EXPECT_EQ(unequal_counters(run, record).size(), 1u);
  run.isolation = "run";
  EXPECT_THAT(unequal_counters(run, record), IsEmpty());
  m.post.allocation_events += 1;
  auto const findings = unequal_counters(run, record);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].reason, HasSubstr("allocation_events has changed by 441 on rank 1 (440 on the others)"));
}

TEST_F(unequal, what_keeping_the_clocks_up_took_does_not_count_but_levels_and_later_events_do) {
  auto record = record_of(3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    auto& m = measured(record, rank);
    m.clock_requests = 40 * static_cast<std::int64_t>(rank);
    for (auto* c : {&m.pre, &m.post}) c->allocation_events += 11 * *m.clock_requests;
    for (auto& point : m.soak) point.allocator.allocation_events += 11 * *m.clock_requests;
  }
  EXPECT_THAT(unequal_counters(run, record), IsEmpty());

  auto events = record;
  measured(events, 1).post.allocation_events += 1;
  auto findings = unequal_counters(run, events);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].reason, HasSubstr("allocation_events has changed by 441 on rank 1 (440 on the others)"));
  EXPECT_EQ(findings[0].evidence["counters"][0]["since_before_the_timed_window"], true);

  measured(record, 1).pre.reserved_bytes += 1 << 20;
  findings = unequal_counters(run, record);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].reason, HasSubstr("before the timed window, reserved_bytes is "));
  EXPECT_EQ(findings[0].evidence["counters"][0]["since_before_the_timed_window"], false);
}

TEST_F(unequal, after_different_numbers_of_requests_events_are_not_compared_but_levels_are) {
  auto record = record_of(3);
  for (auto& point : measured(record, 1).soak) {
    point.requests += 5;
    point.allocator.allocation_events += 55;
  }
  EXPECT_THAT(unequal_counters(run, record), IsEmpty());
  measured(record, 1).soak[2].allocator.reserved_bytes += 1 << 20;
  EXPECT_EQ(unequal_counters(run, record).size(), 1u);
}

TEST_F(unequal, nothing_is_said_where_ranks_need_not_agree_or_cannot_tell) {
  auto record = record_of(2);
  leak(measured(record, 1));
  auto fresh = run;
  fresh.stream_threads = "fresh";
  EXPECT_THAT(unequal_counters(fresh, record), IsEmpty());
  auto unavailable = record;
  measured(unavailable, 0).counters_unavailable = "caching is off";
  EXPECT_THAT(unequal_counters(run, unavailable), IsEmpty());
  record.by_rank[0].reset();
  EXPECT_THAT(unequal_counters(run, record), IsEmpty());
}

// Latencies of ranks: `count` samples each, within 0.5% of the rank's level, in microseconds.
case_latencies latencies_of(std::vector<double> const& levels_us, std::size_t count = 400) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0.995, 1.005);
  case_latencies out;
  for (auto const level : levels_us) {
    std::vector<std::vector<std::int64_t>> one(1);
    while (one[0].size() < count) one[0].push_back(static_cast<std::int64_t>(1000 * level * uniform(random)));
    sort_times(one[0]);
    out.by_rank.push_back(summarise(one));
  }
  return out;
}

TEST(stragglers, of_equal_ranks_there_are_none) {
  EXPECT_THAT(stragglers(latencies_of({400, 401, 399, 402, 400, 398, 400, 401})), IsEmpty());
}

TEST(stragglers, are_in_one_finding_the_slowest_first) {
  auto const findings = stragglers(latencies_of({400, 440, 399, 402, 480, 398, 400, 401, 400, 399}));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].check, "straggler");
  EXPECT_THAT(findings[0].ranks, ElementsAre(1, 4));
  EXPECT_EQ(findings[0].reason, "p50 is above the other ranks' by 20% on rank 4, 10% on rank 1");
  EXPECT_GT(findings[0].evidence["ranks"][0]["modified_z"], 3.5);
}

TEST(stragglers, a_gap_of_less_than_three_percent_is_none_however_odd) {
  EXPECT_THAT(stragglers(latencies_of({400, 400.1, 399.9, 400.2, 410, 399.8, 400, 400.1})), IsEmpty());
}

TEST(stragglers, a_gap_that_is_ordinary_among_ranks_that_are_far_apart_is_none) {
  EXPECT_THAT(stragglers(latencies_of({360, 380, 400, 420, 440, 390, 410, 430})), IsEmpty());
}

TEST(stragglers, a_faster_rank_is_none) {
  EXPECT_THAT(stragglers(latencies_of({400, 401, 399, 402, 300, 398, 400, 401})), IsEmpty());
}

TEST(stragglers, few_ranks_need_a_gap_of_ten_percent) {
  EXPECT_THAT(stragglers(latencies_of({400, 400, 432})), IsEmpty());
  EXPECT_THAT(stragglers(latencies_of({400, 400, 448}))[0].ranks, ElementsAre(2));
}

TEST(stragglers, two_ranks_are_compared_with_each_other) {
  EXPECT_THAT(stragglers(latencies_of({400, 432})), IsEmpty());
  auto const findings = stragglers(latencies_of({448, 400}));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].ranks, ElementsAre(0));
  EXPECT_THAT(findings[0].reason, HasSubstr("12% on rank 0"));
}

// The ranks of the one finding.
std::vector<std::int64_t> slow_ranks(std::vector<double> const& levels_us) {
  auto const findings = stragglers(latencies_of(levels_us));
  return findings.empty() ? std::vector<std::int64_t>{} : findings[0].ranks;
}

TEST(stragglers, may_be_half_of_the_ranks_or_most) {
  EXPECT_THAT(slow_ranks({100, 101, 100, 99, 300, 301, 302, 299}), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(slow_ranks({100, 300, 301}), ElementsAre(1, 2));
  EXPECT_THAT(slow_ranks({300, 100, 301, 101, 299, 99}), ElementsAre(0, 2, 4));
  EXPECT_THAT(slow_ranks({100, 100, 101, 99, 120, 121, 120, 119, 120}), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(slow_ranks({100, 101, 102, 99, 98, 100, 101, 103, 150, 149, 152, 151, 154, 150, 149, 151}),
              ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(slow_ranks({100, 300, 300, 300}), ElementsAre(1, 2, 3));
}

TEST(stragglers, of_a_slow_group_are_told_against_the_fast_one) {
  auto const findings = stragglers(latencies_of({100, 100, 150, 150}));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].reason, HasSubstr("by 50% on rank"));
  EXPECT_NEAR(findings[0].evidence["ranks"][0]["usual_p50_ns"], 100'000, 500);
}

TEST(stragglers, may_be_slow_in_different_ways) {
  EXPECT_THAT(slow_ranks({100, 100, 100, 100, 300, 301, 900, 905}), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(slow_ranks({100, 100, 101, 100, 99, 100, 115, 300}), ElementsAre(6, 7));
}

TEST(stragglers, two_groups_within_ten_percent_or_less_apart_than_wide_are_none) {
  EXPECT_THAT(slow_ranks({100, 100, 100, 100, 108, 108, 108, 108}), IsEmpty());
  EXPECT_THAT(slow_ranks({100, 104, 108, 112, 126, 130, 134, 138}), IsEmpty());
}

// Healthy ranks whose levels differ by chance, with a standard deviation of 3%.
TEST(stragglers, are_found_in_about_one_of_a_hundred_healthy_cases) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> level(100'000, 3'000);
  for (std::size_t const ranks : {3, 4, 5, 6, 8, 9, 16, 64}) {
    int found = 0;
    for (int i = 0; i < 2000; ++i) {
      case_latencies latencies;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::vector const samples(6, std::int64_t{std::llround(level(random))});
        latencies.by_rank.push_back(summarise(std::array{samples}));
      }
      found += stragglers(latencies).empty() ? 0 : 1;
    }
    EXPECT_LE(found, 40) << ranks << " ranks";
  }
}

TEST(stragglers, too_few_samples_make_none) {
  EXPECT_THAT(stragglers(latencies_of({400, 800}, 5)), IsEmpty());
  EXPECT_EQ(stragglers(latencies_of({400, 800}, 6)).size(), 1u);
}

TEST(stragglers, intervals_that_overlap_make_none) {
  auto latencies = latencies_of({400, 460});
  latencies.by_rank[1]->at[0].low = *latencies.by_rank[0]->at[0].high;
  EXPECT_THAT(stragglers(latencies), IsEmpty());
}

TEST(stragglers, a_rank_that_was_not_measured_is_left_out) {
  auto latencies = latencies_of({400, 400, 400, 460});
  latencies.by_rank[0].reset();
  EXPECT_THAT(stragglers(latencies)[0].ranks, ElementsAre(3));
}

TEST(spread, has_skew_the_slowest_rank_the_worst_latency_and_the_start_skew_of_one_host) {
  auto const j = synthetic_job();
  run_record run{synthetic_info(j, 4), j, {}, {}};
  case_record record{{"eager", 2, 0}, {}};
  for (std::int64_t rank = 0; rank < 4; ++rank)
    record.by_rank.push_back(synthetic_result(run.info, j, record.id, rank));
  measured(record, 2).gate_ns = 5'000'000; // two ranks to a host
  measured(record, 3).gate_ns = 5'000'700;
  measured(record, 0).gate_ns = measured(record, 1).gate_ns = 9'000'000;
  auto const latencies = latencies_of({400, 500, 600, 500});
  auto const s = *spread_of(run, record, latencies);
  EXPECT_NEAR(s.skew, 1.5, 0.01);
  EXPECT_EQ(s.slowest_rank, 2);
  EXPECT_EQ(s.max_latency_ns, latencies.by_rank[2]->max);
  EXPECT_EQ(s.start_skew_ns, 700);
}

TEST(spread, clocks_of_different_hosts_are_not_compared) {
  auto const j = synthetic_job();
  run_record run{synthetic_info(j, 3), j, {}, {}};
  case_record record{{"eager", 2, 0}, {}};
  for (std::int64_t rank = 0; rank < 3; ++rank)
    record.by_rank.push_back(synthetic_result(run.info, j, record.id, rank));
  record.by_rank[1].reset();
  auto latencies = latencies_of({400, 400, 400});
  latencies.by_rank[1].reset();
  EXPECT_FALSE(spread_of(run, record, latencies)->start_skew_ns);
  EXPECT_FALSE(spread_of(run, case_record{record.id, {}}, {}));
}

} // namespace
} // namespace plateau
