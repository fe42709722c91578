// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/merge.hpp"

#include "orchestrator/store/assemble.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <cstdio>

namespace plateau {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

// The number-th run of a fleet: a node of its own with two ranks.
run_folder run_of_a_fleet(fs::path const& fleet, job const& j, int number) {
  char digits[8];
  std::snprintf(digits, sizeof digits, "%04d", number);
  auto folder = create_run_folder(fleet / digits);
  auto info = synthetic_info(j, 2);
  info.run_id = std::string("20260304T101500Z-synthetic-") + digits;
  for (auto& rank : info.ranks) rank.host = std::string("node") + digits, rank.host_id = rank.host + "/boot";
  write_run_info(folder, info);
  for (auto const& id : cases_of(j))
    for (std::int64_t rank : {0, 1}) store(folder, synthetic_result(info, j, id, rank));
  return folder;
}

TEST(merge, makes_one_run_of_a_hundred) {
  scratch_folder scratch;
  auto run = synthetic_job();
  run.modes = {"eager"};
  run.concurrency_levels = {2};
  merge_request request{{}, scratch.path / "all", {"plateau", "merge"}};
  for (int number = 99; number >= 0; --number)
    request.runs.push_back(run_of_a_fleet(scratch.path / "fleet", run, number).path);
  auto const made = merge_runs(request);
  EXPECT_THAT(made.complaints, IsEmpty());
  auto const all = assemble(made.folder, run_outcome{0, "", "now"});
  EXPECT_EQ(all.code, exit_code::good);
  ASSERT_THAT(all.record.info.ranks, SizeIs(200));
  for (auto const& rank : all.record.info.ranks) {
    EXPECT_EQ(rank.origin->rank, rank.rank % 2);
    EXPECT_EQ("node" + rank.origin->run_id.substr(rank.origin->run_id.size() - 4), rank.host);
  }
  EXPECT_EQ(all.record.info.ranks[7].host, "node0003") << "in the order of the runs' names, as all began at once";
  EXPECT_EQ(all.summary["environment"]["host_count"], 100);
  EXPECT_EQ(all.summary["results"][0]["ranks_measured"], 200);
}

TEST(merge, keeps_rehearsals_apart_and_what_makes_a_run_incomparable) {
  scratch_folder scratch;
  auto const run = synthetic_job();
  merge_request request{{}, scratch.path / "all", {}};
  for (int const number : {1, 2}) request.runs.push_back(run_of_a_fleet(scratch.path / "fleet", run, number).path);
  auto const rehearsed_on = [&](std::optional<std::string> const& gpu) {
    auto info = read_run_info({request.runs[1]});
    info.rehearsed = gpu;
    info.not_comparable = "ranks 0-1 have the same GPU";
    write_run_info({request.runs[1]}, info);
  };
  rehearsed_on("a GPU");
  EXPECT_THROW(merge_runs(request), input_error);
  rehearsed_on(std::nullopt);
  EXPECT_EQ(read_run_info(merge_runs(request).folder).not_comparable,
            "in 20260304T101500Z-synthetic-0002 ranks 0-1 have the same GPU");
}

TEST(merge, that_is_refused_has_made_nothing) {
  scratch_folder scratch;
  auto const run = synthetic_job();
  auto const from = run_of_a_fleet(scratch.path / "fleet", run, 1);
  fs::create_directories(scratch.path / "to");
  EXPECT_THROW(merge_runs({{from.path, scratch.path / "nowhere"}, scratch.path / "to", {}}), input_error);
  EXPECT_TRUE(fs::is_empty(scratch.path / "to"));
}

} // namespace
} // namespace plateau
