// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/launch/run_line.hpp"
#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/rank/supervisor.hpp"
#include "orchestrator/rank/worker_process.hpp"

#include <chrono>
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace plateau {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(describe_end, names_the_signal_or_the_code) {
  EXPECT_EQ(describe_end(SIGSEGV), "killed by SIGSEGV");
  EXPECT_THAT(describe_end(SIGKILL), StartsWith("killed by SIGKILL"));
  EXPECT_EQ(describe_end(3 << 8), "exited with code 3");
}

TEST(patience, depends_on_what_the_worker_is_doing) {
  deadlines const limits{1, 2, 3, 4};
  EXPECT_EQ(patience_in(phase::compiling, limits).seconds, 1);
  EXPECT_EQ(patience_in(phase::preparing, limits).seconds, 2);
  EXPECT_EQ(patience_in(phase::keeping_clocks, limits).seconds, 3);
  EXPECT_EQ(patience_in(phase::timed, limits).seconds, 3);
  EXPECT_EQ(patience_in(phase::soaking, limits).seconds, 3);
  EXPECT_THAT(std::string(patience_in(phase::soaking, limits).did_not), HasSubstr("soak"));
}

// Two stream threads in a timed window, looked at from second 0 on with a stall deadline of 3 s.
struct stall_watch_test : testing::Test {
  stall_watch_test() {
    seen->now = phase::timed;
    for (std::size_t const t : {0, 1}) seen->threads[t].serving = true;
    watch.emplace(*seen, stall_watch::clock::time_point{});
  }

  std::string look_at(int second) {
    return watch->look(*seen, {100, 20, 3, 100}, stall_watch::clock::time_point{} + std::chrono::seconds(second))
        .value_or("");
  }

  std::unique_ptr<progress> seen = std::make_unique<progress>();
  std::optional<stall_watch> watch;
};

TEST_F(stall_watch_test, lets_a_worker_be_whose_threads_all_go_on) {
  for (int second = 1; second < 20; ++second) {
    ++seen->threads[0].requests;
    if (second % 3 == 0) ++seen->threads[1].requests;
    EXPECT_EQ(look_at(second), "");
  }
}

TEST_F(stall_watch_test, names_the_thread_that_hangs_while_another_goes_on) {
  for (int second = 1; second <= 3; ++second) {
    ++seen->threads[0].requests;
    EXPECT_EQ(look_at(second), "");
  }
  ++seen->threads[0].requests;
  EXPECT_EQ(look_at(4), "stream thread 1 finished no timed request within 3 s");
}

TEST_F(stall_watch_test, names_none_when_all_hang) {
  EXPECT_EQ(look_at(3), "");
  EXPECT_EQ(look_at(4), "finished no timed request within 3 s");
}

TEST_F(stall_watch_test, does_not_wait_for_a_thread_that_has_finished_its_share) {
  seen->threads[1].serving = false;
  for (int second = 1; second < 20; ++second) {
    ++seen->threads[0].requests;
    EXPECT_EQ(look_at(second), "");
  }
  seen->threads[1].serving = true; // the next window
  for (int second = 20; second < 23; ++second) {
    ++seen->threads[0].requests;
    EXPECT_EQ(look_at(second), "");
  }
  ++seen->threads[0].requests;
  EXPECT_THAT(look_at(24), StartsWith("stream thread 1 "));
}

TEST_F(stall_watch_test, begins_anew_with_each_phase_and_soak_window) {
  EXPECT_EQ(look_at(3), "");
  seen->now = phase::soaking;
  EXPECT_EQ(look_at(4), "");
  EXPECT_EQ(look_at(7), "");
  for (auto& thread : seen->threads) thread.serving = false;
  ++seen->soak_window;
  EXPECT_EQ(look_at(8), "");
  EXPECT_EQ(look_at(11), "");
  EXPECT_EQ(look_at(12), "finished no soak request within 3 s");
}

TEST(run_line, comes_back_whole_and_other_output_is_let_pass) {
  auto const line = to_line({run_line::kind::refusal, "two\nlines"});
  ASSERT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << "one line on its way";
  auto const back = run_line_of(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->what, run_line::kind::refusal);
  EXPECT_EQ(back->text, "two\nlines");
  EXPECT_FALSE(run_line_of("mpirun noticed that process rank 1 ..."));
  EXPECT_FALSE(run_line_of(""));
  EXPECT_FALSE(run_line_of("\x1eQ no such kind"));
}

// A program that runs until it is killed stands in for a worker that says nothing.
supervisor with_a_silent_worker() { return supervisor({"/usr/bin/yes", {}, testing::TempDir() + "worker.log"}, {}); }

TEST(supervisor, makes_a_failed_case_of_what_fails_on_its_own_side) {
  auto rank = with_a_silent_worker();
  auto const result = rank.prepare({"eager", 1, 0}, [](progress const&) -> std::optional<std::string> {
    throw std::runtime_error("no memory left");
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, case_status::failed);
  EXPECT_THAT(result->reason, HasSubstr("no memory left"));
}

TEST(supervisor, lets_the_loss_of_agreement_end_the_run) {
  auto rank = with_a_silent_worker();
  auto const lost = [](progress const&) -> std::optional<std::string> { throw out_of_step("rank 1 is silent"); };
  EXPECT_THROW(rank.prepare({"eager", 1, 0}, lost), out_of_step);
}

case_record record_of(std::vector<std::optional<case_status>> const& statuses) {
  case_record record{{"eager", 1, 0}, {}};
  for (auto const& status : statuses) {
    auto& result = record.by_rank.emplace_back();
    if (!status) continue;
    result.emplace();
    result->status = *status;
    if (*status != case_status::passed) result->reason = "because";
  }
  return record;
}

exit_code code_of(std::vector<case_record> cases) {
  run_record record;
  record.cases = std::move(cases);
  return exit_code_of(record);
}

TEST(exit_code, tells_missing_from_not_passed_from_skipped) {
  using enum case_status;
  auto const good = record_of({passed, passed}), lost = record_of({passed, crashed}),
             gone = record_of({passed, std::nullopt}), skip = record_of({skipped, skipped});
  EXPECT_EQ(code_of({good, skip}), exit_code::good);
  EXPECT_EQ(code_of({good, lost}), exit_code::not_passed);
  EXPECT_EQ(code_of({lost, gone}), exit_code::incomplete);
  EXPECT_EQ(code_of({}), exit_code::good);
}

TEST(verdict, is_the_gravest_of_the_ranks_and_names_them) {
  using enum case_status;
  EXPECT_EQ(verdict_of(record_of({passed, timed_out, skipped})).status, timed_out);
  EXPECT_EQ(verdict_of(record_of({passed, std::nullopt})).status, missing);
  EXPECT_EQ(verdict_of(record_of({passed, crashed, crashed, crashed, passed, crashed})).reason, "ranks 1-3,5: because");
  EXPECT_EQ(verdict_of(record_of({crashed, crashed})).reason, "because");
  EXPECT_EQ(verdict_of(record_of({passed, std::nullopt})).reason, "rank 1: no result");
  EXPECT_EQ(verdict_of(record_of({passed})).reason, "");
}

} // namespace
} // namespace plateau
