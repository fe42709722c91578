// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/resume.hpp"

#include "orchestrator/store/folder_lock.hpp"
#include "schemas/error.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

// A run of two ranks that has every result.
struct resume : testing::Test {
  scratch_folder scratch;
  job run = synthetic_job();
  run_info info = synthetic_info(run, 2);
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);
  case_id const eager{"eager", 2, 0}, arena{"arena", 3, 0};

  earlier_run opened() const { return open_to_resume({folder.path, {}, {}, {}}); }
  resume_plan plan(bool retry_failed = false) const { return plan_resume(opened(), retry_failed); }

  std::vector<std::string> to_run(bool retry_failed = false) const {
    std::vector<std::string> ids;
    for (auto const& id : plan(retry_failed).to_run) ids.push_back(id.text());
    return ids;
  }

  void store_attempt(case_id const& id, std::int64_t rank, std::int64_t attempt) const {
    auto result = synthetic_result(info, run, id, rank);
    result.attempt = attempt;
    store(folder, result);
  }

  std::int64_t counted(case_id const& id) const { return attempt_that_counts(folder, id, 2).attempt; }

  std::string refusal(resume_request const& request) const {
    try {
      open_to_resume(request);
    } catch (input_error const& e) {
      return e.what();
    }
    return "not refused";
  }
};

TEST_F(resume, runs_nothing_of_a_run_that_has_every_result) { EXPECT_THAT(to_run(), IsEmpty()); }

TEST_F(resume, runs_what_any_rank_lacks_in_the_order_of_the_grid) {
  fs::remove(folder.raw_result(arena, 1));
  fs::remove_all(folder.cases() / "eager.c3");
  EXPECT_THAT(to_run(), ElementsAre("eager.c3", "arena.c3"));
}

TEST_F(resume, runs_again_what_cannot_be_read_or_is_of_another_run) {
  std::ofstream(folder.raw_result(eager, 0)) << "damaged";
  auto foreign = synthetic_result(info, run, arena, 1);
  foreign.run_id = "20200101T000000Z-other-0000";
  store(folder, foreign);
  EXPECT_THAT(to_run(), ElementsAre("eager.c2", "arena.c3"));
}

TEST_F(resume, takes_every_status_for_a_result_unless_it_is_told_to_retry) {
  for (auto const status : {case_status::failed, case_status::crashed, case_status::timed_out, case_status::skipped,
                            case_status::out_of_memory}) {
    store(folder, failed_result(info, eager, 1, status, "planted"));
    EXPECT_THAT(to_run(), IsEmpty()) << name_of(status);
    EXPECT_THAT(to_run(true), ElementsAre("eager.c2")) << name_of(status);
  }
}

TEST_F(resume, keeps_the_last_attempt_that_every_rank_has) {
  store_attempt(eager, 0, 2);
  EXPECT_EQ(counted(eager), 1) << "the second attempt is not whole";
  store_attempt(eager, 1, 2);
  EXPECT_EQ(counted(eager), 2);
  store_attempt(eager, 0, 3);
  EXPECT_EQ(counted(eager), 2);
  EXPECT_EQ(plan().kept.front().attempt, 2);
}

TEST_F(resume, counts_the_attempt_that_most_ranks_have_where_none_is_whole_and_of_those_the_last) {
  for (std::int64_t const rank : {0, 1}) fs::remove(folder.raw_result(eager, rank));
  EXPECT_EQ(attempt_that_counts(folder, eager, 3).ranks, 0);
  store_attempt(eager, 0, 1);
  store_attempt(eager, 1, 1);
  store_attempt(eager, 0, 2);
  EXPECT_EQ(attempt_that_counts(folder, eager, 3).attempt, 1);
  fs::remove(folder.raw_result(eager, 1));
  EXPECT_EQ(attempt_that_counts(folder, eager, 3).attempt, 2);
}

TEST_F(resume, is_not_misled_by_files_that_are_no_results) {
  for (auto const* name : {"rank-00000.attempt-2.cbor.partial", ".rank-00000.attempt-2.cbor", "rank-0.attempt-2.cbor",
                           "rank-00000.attempt-02.cbor", "rank-00000.attempt-1.cbor", "rank-00007.attempt-2.cbor",
                           "rank--0001.cbor", "notes.txt"})
    std::ofstream(folder.cases() / "eager.c2" / name) << "x";
  EXPECT_EQ(counted(eager), 1);
  EXPECT_THAT(to_run(), IsEmpty());
}

TEST_F(resume, removes_what_a_whole_attempt_replaces_and_no_more) {
  for (std::int64_t const rank : {0, 1}) store_attempt(eager, rank, 3);
  store_attempt(eager, 0, 2);
  remove_older_results(folder, eager, 0, 3);
  EXPECT_FALSE(fs::exists(folder.raw_result(eager, 0, 1)) || fs::exists(folder.raw_result(eager, 0, 2)));
  EXPECT_TRUE(fs::exists(folder.raw_result(eager, 0, 3)) && fs::exists(folder.raw_result(eager, 1, 1)));
}

TEST_F(resume, refuses_another_job_with_every_difference) {
  auto const asked = refusal({folder.path, {}, {{"hidden", "512"}, {"soak", "windows=4"}, {"device", "cuda"}}, {}});
  EXPECT_THAT(asked, HasSubstr("/device: \"cpu\" in the run, \"cuda\" now"));
  EXPECT_THAT(asked, HasSubstr("/hidden: 64 in the run, 512 now"));
  EXPECT_THAT(asked, HasSubstr("/soak/windows: 3 in the run, 4 now"));
}

TEST_F(resume, takes_a_job_that_leaves_its_device_and_dtype_open_or_has_another_name) {
  EXPECT_EQ(refusal({folder.path, {}, {{"device", "auto"}, {"name", "other"}, {"hidden", "64"}}, 2}), "not refused");
}

TEST_F(resume, refuses_another_world_a_merged_run_and_what_is_no_run) {
  EXPECT_THAT(refusal({folder.path, {}, {}, 3}), HasSubstr("has 2 ranks, and 3 are there now"));
  EXPECT_THAT(refusal({scratch.path, {}, {}, {}}), HasSubstr("no run.json"));
  info.merged_from.emplace();
  write_run_info(folder, info);
  EXPECT_THAT(refusal({folder.path, {}, {}, {}}), HasSubstr("was merged from several runs and cannot be resumed"));
}

TEST_F(resume, goes_to_the_folder_itself_not_to_a_link_that_may_soon_point_elsewhere) {
  point_latest_at(folder);
  EXPECT_EQ(open_to_resume({scratch.path / "latest", {}, {}, {}}).folder.path, fs::canonical(folder.path));
}

TEST_F(resume, takes_away_what_claims_that_the_run_has_ended) {
  for (auto const& file : {folder.outcome_json(), folder.summary_json(), folder.run_h5()}) std::ofstream(file) << "x";
  retract_results(folder);
  retract_results(folder);
  EXPECT_FALSE(fs::exists(folder.outcome_json()) || fs::exists(folder.summary_json()) || fs::exists(folder.run_h5()));
  EXPECT_TRUE(fs::exists(folder.run_json()));
}

TEST_F(resume, of_a_folder_that_another_process_holds_is_refused_until_that_has_ended) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  auto const other = fork();
  if (other == 0) {
    close(ends[1]);
    folder_lock const held(folder);
    char end;
    _exit(read(ends[0], &end, 1) == 0 ? 0 : 1);
  }
  std::string said;
  while (said.find("process " + std::to_string(other) + " on ") == std::string::npos) {
    try {
      folder_lock const too_early(folder); // the other one may not have it yet
    } catch (input_error const& e) {
      said = e.what();
    }
  }
  EXPECT_THAT(said, HasSubstr(folder.path.string() + ": is being run by "));
  close(ends[1]);
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_NO_THROW(folder_lock{folder});
  close(ends[0]);
}

} // namespace
} // namespace plateau
