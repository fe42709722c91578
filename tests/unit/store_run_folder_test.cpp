// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/run_folder.hpp"

#include "orchestrator/store/durable.hpp"
#include "schemas/codec.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <system_error>

namespace plateau {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
namespace fs = std::filesystem;

template <class Error>
std::string message_of(auto&& call) {
  try {
    call();
  } catch (Error const& e) {
    return e.what();
  }
  return "nothing thrown";
}

TEST(run_folder, ids_hold_the_time_the_name_and_four_digits) {
  EXPECT_THAT(new_run_id("smoke_cpu"), MatchesRegex("[0-9]{8}T[0-9]{6}Z-smoke_cpu-[0-9a-f]{4}"));
}

TEST(run_folder, ids_are_safe_as_file_names_whatever_the_job_is_called) {
  EXPECT_THAT(new_run_id("../a b/\n\xc3\xa4"), MatchesRegex("[0-9TZ]+-_._a_b____-[0-9a-f]{4}"));
  EXPECT_THAT(new_run_id(""), MatchesRegex("[0-9TZ]+-job-[0-9a-f]{4}"));
  EXPECT_LT(new_run_id(std::string(1000, 'x')).size(), 100u);
}

TEST(run_folder, is_made_with_its_parents) {
  scratch_folder scratch;
  auto const folder = create_run_folder(scratch.path / "runs/deep/one");
  EXPECT_TRUE(fs::is_directory(folder.cases()));
  EXPECT_TRUE(fs::is_directory(folder.logs()));
  EXPECT_EQ(folder.worker_log(3).filename(), "rank-00003.log");
}

TEST(run_folder, an_empty_folder_is_taken_as_it_is) {
  scratch_folder scratch;
  EXPECT_NO_THROW(create_run_folder(scratch.path));
}

TEST(run_folder, is_never_made_over_something_that_exists) {
  scratch_folder scratch;
  auto const taken = scratch.path / "taken";
  std::ofstream(scratch.path / "file") << "precious";
  create_run_folder(taken);
  for (auto const& path : {taken, scratch.path / "file"})
    EXPECT_THAT(message_of<input_error>([&] { create_run_folder(path); }),
                HasSubstr(path.string() + ": exists and is not an empty folder"));
}

TEST(run_folder, is_opened_by_itself_or_by_a_file_in_it) {
  scratch_folder scratch;
  auto const made = create_run_folder(scratch.path / "run");
  auto const info = synthetic_info(synthetic_job(), 2);
  write_run_info(made, info);
  std::ofstream(made.summary_json()) << "{}";
  EXPECT_EQ(open_run_folder(made.path).path, made.path);
  EXPECT_EQ(open_run_folder(made.summary_json()).path, made.path);
  EXPECT_EQ(encode(read_run_info(open_run_folder(made.path))), encode(info));
}

TEST(run_folder, that_is_none_is_refused_with_a_sentence) {
  scratch_folder scratch;
  EXPECT_THAT(message_of<input_error>([&] { open_run_folder(scratch.path); }),
              HasSubstr("is neither a run folder nor in one: there is no run.json"));
  EXPECT_THAT(message_of<input_error>([&] { open_run_folder(scratch.path / "absent"); }), HasSubstr("does not exist"));
}

TEST(run_folder, a_damaged_or_newer_run_json_is_refused_with_its_path) {
  scratch_folder scratch;
  auto const folder = create_run_folder(scratch.path / "run");
  for (auto const* text : {"{\"schema\": \"plateau.run/1.0\"", "[]", "{\"schema\": \"plateau.run/2.0\"}", ""}) {
    std::ofstream(folder.run_json()) << text;
    EXPECT_THAT(message_of<format_error>([&] { read_run_info(folder); }), HasSubstr(folder.run_json().string()))
        << text;
  }
}

TEST(run_folder, the_outcome_is_absent_until_it_is_written) {
  scratch_folder scratch;
  auto const folder = create_run_folder(scratch.path / "run");
  EXPECT_FALSE(read_outcome(folder));
  write_outcome(folder, {75, "stopped by SIGTERM", "2026-03-04T10:20:00Z"});
  EXPECT_EQ(read_outcome(folder)->exit_code, 75);
}

TEST(run_folder, latest_follows_the_last_run) {
  scratch_folder scratch;
  for (auto const* name : {"first", "second"}) {
    point_latest_at(create_run_folder(scratch.path / name));
    EXPECT_EQ(fs::read_symlink(scratch.path / "latest"), name);
  }
  point_latest_at({scratch.path / "first/"}); // a trailing slash names the same folder
  EXPECT_EQ(fs::read_symlink(scratch.path / "latest"), "first");
}

TEST(run_folder, latest_is_left_alone_when_it_is_somebody_elses) {
  scratch_folder scratch;
  fs::create_directory(scratch.path / "latest");
  point_latest_at(create_run_folder(scratch.path / "run"));
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(scratch.path / "latest")));
}

TEST(write_durably, a_failure_names_the_path_and_leaves_nothing) {
  scratch_folder scratch;
  auto const path = scratch.path / "in_the_way";
  fs::create_directories(path / "full");
  EXPECT_THAT(message_of<std::system_error>([&] { write_durably(path, "text"); }), HasSubstr(path.string()));
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path), fs::directory_iterator()), 1);
}

TEST(write_durably, a_file_of_that_name_is_replaced) {
  scratch_folder scratch;
  auto const path = scratch.path / "file";
  write_durably(path, "old");
  std::vector<std::uint8_t> const a{'n', 'e'}, b{'w'};
  write_durably(path, {a, b});
  EXPECT_EQ(read_file(path), (std::vector<std::uint8_t>{'n', 'e', 'w'}));
}

} // namespace
} // namespace plateau
