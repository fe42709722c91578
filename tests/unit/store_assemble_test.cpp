// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/assemble.hpp"

#include "orchestrator/store/durable.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <csignal>

#include <sys/resource.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

struct assembling : testing::Test {
  scratch_folder scratch;
  job run = synthetic_job();
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);

  bool left_partial() const { return fs::exists(folder.path / "run.h5.partial"); }
};

json case_of(json const& summary, std::string const& id) {
  for (auto const& entry : summary["cases"])
    if (entry["case_id"] == id) return entry;
  return nullptr;
}

TEST_F(assembling, a_finished_run_gives_both_files_and_no_complaint) {
  auto const out = assemble(folder);
  EXPECT_THAT(out.complaints, IsEmpty());
  EXPECT_EQ(out.summary["status"], "ok");
  EXPECT_EQ(json::parse(read_file(folder.summary_json())), out.summary);
  EXPECT_TRUE(fs::exists(folder.run_h5()));
  EXPECT_FALSE(left_partial());
}

TEST_F(assembling, the_record_has_everything_but_the_samples) {
  auto const out = assemble(folder);
  ASSERT_EQ(out.record.cases.size(), 4u);
  for (auto const& record : out.record.cases)
    for (auto const& result : record.by_rank) {
      EXPECT_THAT(result->measured->latency_ns, IsEmpty());
      EXPECT_EQ(result->measured->soak.size(), 4u);
    }
}

TEST_F(assembling, can_be_repeated_and_gives_the_same) {
  auto const first = assemble(folder).summary;
  EXPECT_EQ(assemble(folder).summary, first);
}

TEST_F(assembling, what_a_killed_run_left_names_what_is_missing) {
  fs::remove(folder.raw_result({"arena", 2, 0}, 1));
  fs::remove_all(folder.cases() / "arena.c3");
  auto const out = assemble(folder);
  EXPECT_EQ(out.summary["status"], "partial");
  EXPECT_EQ(out.summary["missing"], json::parse(R"([{"case_id": "arena.c2", "ranks": [1]},
                                                   {"case_id": "arena.c3", "ranks": [0, 1]}])"));
  EXPECT_EQ(case_of(out.summary, "arena.c2")["reason"], "rank 1: no result");
  EXPECT_EQ(case_of(out.summary, "arena.c3")["reason"], "no result");
  EXPECT_EQ(out.summary["results"].size(), 3u);
}

TEST_F(assembling, a_run_that_left_nothing_is_failed) {
  fs::remove_all(folder.cases());
  auto const out = assemble(folder);
  EXPECT_EQ(out.summary["status"], "failed");
  EXPECT_THAT(out.summary["results"], IsEmpty());
  EXPECT_TRUE(fs::exists(folder.run_h5()));
}

TEST_F(assembling, a_damaged_result_is_left_out_with_a_sentence) {
  auto const path = folder.raw_result({"eager", 3, 0}, 0);
  fs::resize_file(path, fs::file_size(path) / 2);
  auto const out = assemble(folder);
  EXPECT_THAT(out.complaints, ElementsAre(HasSubstr(path.string() + ": is truncated")));
  EXPECT_EQ(out.summary["missing"], json::parse(R"([{"case_id": "eager.c3", "ranks": [0]}])"));
}

TEST_F(assembling, a_result_of_another_run_is_left_out) {
  auto info = synthetic_info(run, 2);
  info.run_id = "20200101T000000Z-other-0000";
  store(folder, synthetic_result(info, run, {"eager", 2, 0}, 0));
  EXPECT_THAT(assemble(folder).complaints, ElementsAre(HasSubstr("is a result of run 20200101T000000Z-other-0000")));
}

TEST_F(assembling, a_result_with_more_requests_than_the_job_asks_for_is_left_out) {
  auto longer = run;
  longer.requests_per_worker = 21;
  store(folder, synthetic_result(synthetic_info(run, 2), longer, {"eager", 2, 0}, 0));
  EXPECT_THAT(assemble(folder).complaints, ElementsAre(HasSubstr("has more requests than the job asks for")));
}

TEST_F(assembling, the_outcome_is_in_the_summary) {
  write_outcome(folder, {75, "stopped by SIGTERM", "2026-03-04T10:20:00Z"});
  EXPECT_EQ(assemble(folder).summary["run"]["outcome"]["reason"], "stopped by SIGTERM");
  EXPECT_EQ(assemble(folder, run_outcome{0, "", "later"}).summary["run"]["outcome"]["finished"], "later");
}

// A limit on the size of files fails the way a full disk does: write() says no in the middle.
[[noreturn]] void assemble_with_a_full_disk(run_folder const& folder) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit const little{4096, 4096};
  setrlimit(RLIMIT_FSIZE, &little);
  try {
    assemble(folder);
  } catch (std::runtime_error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::exit(7); // not _Exit: HDF5's own clean-up has to get through this too
  }
  std::exit(0);
}

TEST_F(assembling, a_full_disk_is_an_error_that_leaves_nothing_half_written) {
  EXPECT_EXIT(assemble_with_a_full_disk(folder), testing::ExitedWithCode(7),
              "run.h5: cannot .*: File too large; the raw results are safe");
  EXPECT_FALSE(left_partial());
  EXPECT_FALSE(fs::exists(folder.run_h5()));
  EXPECT_FALSE(fs::exists(folder.summary_json()));
}

} // namespace
} // namespace plateau
