// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/attempts.hpp"

#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

namespace plateau {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

rank_place gpu(std::string const& host, std::string const& uuid, std::string const& torch = "2.11.0") {
  return {host, host + "/boot", "H200", uuid, {{"torch", torch}}};
}
rank_place cpu(std::string const& host, std::string const& name) { return {host, host + "/boot", name, {}, {}}; }

std::string moved_now(rank_place const& before, rank_place const& now) {
  return moved(before, "in attempt 1", now, "now");
}

TEST(place, of_a_gpu_is_its_uuid) {
  EXPECT_EQ(moved_now(gpu("node1", "GPU-1"), gpu("node1", "GPU-1")), "");
  EXPECT_EQ(moved_now(gpu("node1", "GPU-1"), gpu("renamed", "GPU-1")), "") << "a container may have another name";
  EXPECT_EQ(moved_now(gpu("node1", "GPU-1"), gpu("node2", "GPU-7")),
            "H200 GPU-1 on node1 in attempt 1, H200 GPU-7 on node2 now");
}

TEST(place, of_a_cpu_is_its_host_and_its_name) {
  auto rebooted = cpu("node1", "EPYC");
  rebooted.host_id = "node1/another boot";
  EXPECT_EQ(moved_now(cpu("node1", "EPYC"), rebooted), "");
  EXPECT_EQ(moved_now(cpu("node1", "EPYC"), cpu("node2", "EPYC")), "EPYC on node1 in attempt 1, EPYC on node2 now");
  EXPECT_EQ(moved_now(cpu("node1", "EPYC"), cpu("node1", "Xeon")), "EPYC on node1 in attempt 1, Xeon on node1 now");
}

TEST(place, is_another_one_with_other_libraries) {
  EXPECT_EQ(moved_now(gpu("node1", "GPU-1"), gpu("node1", "GPU-1", "2.12.0")), "torch 2.11.0 in attempt 1, 2.12.0 now");
  auto without = gpu("node1", "GPU-1");
  without.versions.clear();
  EXPECT_EQ(moved_now(without, gpu("node1", "GPU-1")), "torch none in attempt 1, 2.11.0 now");
}

TEST(place, of_a_worker_that_did_not_come_up_is_not_known) {
  EXPECT_EQ(moved_now({"node1", "", "", {}, {}}, gpu("node2", "GPU-7")), "");
}

TEST(places, that_differ_are_told_rank_by_rank_and_only_the_first_few) {
  std::vector<rank_place> before, now;
  for (int rank = 0; rank < 8; ++rank) {
    before.push_back(gpu("node1", "GPU-" + std::to_string(rank)));
    now.push_back(gpu("node2", "GPU-" + std::to_string(rank + (rank > 1 ? 8 : 0))));
  }
  auto const told = moved_ranks(before, "before", now, "now");
  EXPECT_THAT(told, testing::StartsWith("rank 2: H200 GPU-2 on node1 before, H200 GPU-10 on node2 now; rank 3: "));
  EXPECT_THAT(told, testing::EndsWith("; and 2 more"));
  EXPECT_EQ(moved_ranks(before, "before", before, "now"), "");
}

// A run of two ranks whose last case was measured by a second attempt.
struct attempts : testing::Test {
  job run = synthetic_job();
  run_record record{synthetic_info(run, 2), run, {}, {}};

  attempts() {
    run_attempt first = attempts_of(record.info).front(), second = first;
    second.attempt = 2;
    for (auto& place : second.places) place.host = "elsewhere", place.host_id = "elsewhere/boot";
    record.info.attempts = {first, second};
    for (auto const& id : cases_of(run)) {
      auto& of_case = record.cases.emplace_back(case_record{id, {}});
      for (std::int64_t rank : {0, 1}) {
        of_case.by_rank.emplace_back(synthetic_result(record.info, run, id, rank));
        of_case.by_rank.back()->attempt = id.text() == "arena.c3" ? 2 : 1;
      }
    }
  }
};

TEST_F(attempts, of_a_run_older_than_resuming_are_one) {
  record.info.attempts.reset();
  ASSERT_THAT(attempts_of(record.info), SizeIs(1));
  EXPECT_EQ(attempts_of(record.info).front().places[1].host, record.info.ranks[1].host);
  EXPECT_THAT(moves_of(record), IsEmpty());
}

TEST_F(attempts, tell_where_each_result_was_measured) {
  EXPECT_EQ(place_at(record.info, 0, 1).host, "node0");
  EXPECT_EQ(place_at(record.info, 0, 2).host, "elsewhere");
  EXPECT_EQ(place_at(record.info, 0, 9).host, "node0") << "where the rank was last";
  EXPECT_EQ(machine_of(record.info, *record.cases[0].by_rank[0]), "node0/boot");
  EXPECT_EQ(machine_of(record.info, *record.cases[3].by_rank[0]), "elsewhere/boot");
}

TEST_F(attempts, on_other_devices_do_not_compare) {
  auto const moves = moves_of(record);
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(told(moves[0]), "not comparable in 20260304T101500Z-synthetic-7f3a: eager.c2, eager.c3, arena.c2 (attempt "
                            "1) with arena.c3 (attempt 2): rank 0: a processor on node0 in attempt 1, a processor on "
                            "elsewhere in attempt 2; rank 1: a processor on node0 in attempt 1, a processor on "
                            "elsewhere in attempt 2");
}

TEST_F(attempts, on_the_same_devices_compare) {
  record.info.attempts->back().places = record.info.attempts->front().places;
  EXPECT_THAT(moves_of(record), IsEmpty());
}

TEST_F(attempts, of_runs_that_were_merged_are_looked_at_run_by_run) {
  run_source const first{"run one", 0, 1, *record.info.attempts, {}, {}};
  run_source second{"run two", 1, 1, {record.info.attempts->front()}, {}, {}};
  record.info.merged_from = {first, second};
  record.info.attempts.reset();
  for (auto& of_case : record.cases)
    for (auto& result : of_case.by_rank) {
      result->origin_attempt = result->rank == 0 ? result->attempt : 1;
      result->attempt = 1;
    }
  for (std::int64_t rank : {0, 1})
    record.info.ranks[static_cast<std::size_t>(rank)].origin = rank_origin{rank == 0 ? "run one" : "run two", 0};
  auto const moves = moves_of(record);
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(moves[0].run_id, "run one");
  EXPECT_THAT(machine_of(record.info, *record.cases[3].by_rank[0]), HasSubstr("elsewhere/boot in run one"));
  EXPECT_THAT(machine_of(record.info, *record.cases[3].by_rank[1]), HasSubstr("node0/boot in run two"));
  EXPECT_FALSE(ran_together(record.info.ranks[0], record.info.ranks[1]));
}

} // namespace
} // namespace plateau
