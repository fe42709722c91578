// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/report/table.hpp"

#include "orchestrator/store/assemble.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace plateau {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::vector<std::string> lines_of(std::string const& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct the_table : testing::Test {
  scratch_folder scratch;
  job run = synthetic_job_with_a_soak();
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);
  run_info info = synthetic_info(run, 2);

  std::string shown(table_style style = {}) { return table(assemble(folder).summary, style); }
};

TEST_F(the_table, says_what_ran_then_has_a_line_for_each_case) {
  auto const lines = lines_of(shown());
  ASSERT_GE(lines.size(), 8u) << shown();
  EXPECT_EQ(lines[0], "encoder_block float32, hidden 64, batch 2, seq 8, closed loop, intra-op threads 1");
  EXPECT_THAT(lines[1],
              MatchesRegex("case +p50 ms +p99 ms +req/s +alloc/req +segments +reserved +growth/1k +ranks +memory"));
  EXPECT_THAT(
      lines[2],
      MatchesRegex("eager.c2 +0\\.[0-9]{3} +0\\.[0-9]{3}~ +[0-9]+ +11 +0 +8 MiB +0 B +2/2  PLATEAU from window 0"));
  EXPECT_THAT(
      lines[4],
      MatchesRegex("arena.c2 +0\\.[0-9]{3} +0\\.[0-9]{3}~ +[0-9]+ +0 +0 +8 MiB +0 B +2/2  PLATEAU from window 0"));
}

TEST_F(the_table, marks_percentiles_that_need_more_samples) {
  EXPECT_THAT(shown(), HasSubstr("~ fewer samples than this p99 needs (368)\n"));
  run.requests_per_worker = 100; // 400 of two threads on two ranks
  auto const larger = synthetic_folder(scratch.path / "larger", run, 2);
  EXPECT_THAT(table(assemble(larger).summary), Not(HasSubstr("~")));
}

TEST_F(the_table, ends_with_what_is_known_of_the_memory) {
  EXPECT_THAT(shown(), EndsWith("\nfree of allocator events: 2 of 4 measured cases (arena.c2, arena.c3); churn 11 "
                                "events per request in eager\nPLATEAU in 4 of 4 measured cases\n"));
}

TEST_F(the_table, gives_cases_that_did_not_pass_a_line_with_status_and_reason) {
  for (std::int64_t rank = 0; rank < 2; ++rank)
    store(folder, failed_result(info, {"eager", 3, 0}, rank, case_status::skipped, "no C++ compiler; set CXX"));
  store(folder, failed_result(info, {"arena", 3, 0}, 1, case_status::crashed, "killed by SIGSEGV"));
  auto const lines = lines_of(shown());
  EXPECT_EQ(lines[3], "eager.c3  skipped  no C++ compiler; set CXX");
  EXPECT_THAT(lines[5], MatchesRegex("arena.c3 .* 1/2  PLATEAU from window 0  crashed  rank 1: killed by SIGSEGV"));
}

TEST_F(the_table, of_a_run_that_measured_nothing_says_so) {
  std::filesystem::remove_all(folder.cases());
  auto const text = shown();
  EXPECT_THAT(text, HasSubstr("eager.c2  missing  no result\n"));
  EXPECT_THAT(text, EndsWith("nothing was measured\n"));
}

TEST_F(the_table, has_colours_only_when_asked) {
  std::filesystem::remove_all(folder.cases() / "eager.c2");
  EXPECT_THAT(shown(), Not(HasSubstr("\033")));
  EXPECT_THAT(shown({true}), HasSubstr("\033[33mmissing\033[0m"));
}

TEST_F(the_table, shows_a_dash_where_the_counters_cannot_tell) {
  auto blind = synthetic_result(info, run, {"arena", 2, 0}, 0);
  blind.measured->counters_unavailable = "caching is off";
  store(folder, blind);
  EXPECT_THAT(lines_of(shown())[4], MatchesRegex("arena.c2 .* - +- +- +0 B +2/2  PLATEAU.*"));
}

TEST_F(the_table, columns_line_up) {
  auto const lines = lines_of(shown());
  auto const last = lines[1].find("memory");
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(lines[i].find("PLATEAU"), last) << lines[i];
}

TEST(table, refuses_what_is_no_summary) {
  EXPECT_THROW(table(json::parse(R"({"status": "ok"})")), format_error);
  EXPECT_THROW(table(json::parse(R"({"schema": "plateau.summary/2.0"})")), format_error);
}

} // namespace
} // namespace plateau
