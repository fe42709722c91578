// SPDX-License-Identifier: Apache-2.0
// A rehearsal goes the same road as a run, and no time is left on it.
#include "orchestrator/report/explain.hpp"
#include "orchestrator/report/junit.hpp"
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/check_run_file.hpp"
#include "orchestrator/store/hdf5.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <array>

namespace plateau {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr auto gpu = "NVIDIA H200 (sm_90, 139.8 GiB, 132 SMs)";

struct a_rehearsal : testing::Test {
  scratch_folder scratch;
  job run = synthetic_job_with_a_soak();
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);

  a_rehearsal() {
    auto info = synthetic_info(run, 2);
    info.rehearsed = gpu;
    write_run_info(folder, info);
    for (std::int64_t const concurrency : run.concurrency_levels) store(folder, larger_with_streams(info, concurrency));
  }
  case_result larger_with_streams(run_info const& info, std::int64_t concurrency) const {
    auto result = synthetic_result(info, run, {"eager", concurrency, 0}, 0);
    for (auto& point : result.measured->soak) point.allocator.reserved_bytes = concurrency << 22;
    return result;
  }
  json summary() const { return assemble(folder).summary; }
};

bool is_a_time(std::string const& key) {
  return key.ends_with("_ms") || key.ends_with("_ns") || key.ends_with("_sec") || key.ends_with("seconds") ||
         key.starts_with("throughput") || key.starts_with("latency") || key == "across_ranks" || key == "steadiness" ||
         key == "seconds_to_full";
}

// Where a document has a time that is not null.
std::vector<std::string> times_in(json const& document, std::string const& at = "") {
  std::vector<std::string> found;
  if (!document.is_structured()) return found;
  for (auto const& [key, value] : document.items()) {
    auto const here = at + "/" + key;
    if (document.is_object() && is_a_time(key) && !value.is_null()) found.push_back(here);
    for (auto& deeper : times_in(value, here)) found.push_back(std::move(deeper));
  }
  return found;
}

TEST_F(a_rehearsal, has_no_time_in_its_summary_and_the_same_run_has) {
  auto timed = summary();
  timed.erase("meta"); // the job's deadlines
  EXPECT_THAT(times_in(timed), IsEmpty());
  write_run_info(folder, synthetic_info(run, 2));
  EXPECT_GT(times_in(summary()).size(), 50u);
}

TEST_F(a_rehearsal, has_all_that_is_known_of_the_memory) {
  auto const s = summary();
  write_run_info(folder, synthetic_info(run, 2));
  auto const measured = summary();
  ASSERT_EQ(s["results"].size(), measured["results"].size());
  for (std::size_t i = 0; i < s["results"].size(); ++i)
    for (auto const* key : {"case_id", "total_requests", "requests_per_worker", "memory_pre", "memory_post",
                            "allocation_event_delta", "memory_stable", "churn", "attribution", "growth"})
      EXPECT_EQ(s["results"][i][key], measured["results"][i][key]) << key;
  EXPECT_EQ(s["memory_per_stream"], measured["memory_per_stream"]);
}

TEST_F(a_rehearsal, says_which_gpu_was_pretended_and_what_that_cannot_tell) {
  auto const s = summary();
  EXPECT_EQ(s["rehearsal"]["gpu"], gpu);
  EXPECT_EQ(s["run"]["rehearsed"], gpu);
  EXPECT_THAT(s["rehearsal"]["cannot_know"].dump(), AllOf(HasSubstr("CUDA context"), HasSubstr("NCCL's buffers"),
                                                          HasSubstr("by the values"), HasSubstr("outputs")));
  write_run_info(folder, synthetic_info(run, 2));
  EXPECT_TRUE(summary()["rehearsal"].is_null());
}

TEST_F(a_rehearsal, does_not_judge_times_and_says_so) {
  auto const s = summary();
  std::size_t not_made = 0;
  for (auto const& unmade : s["not_made"])
    if (unmade["check"] == "straggler" || unmade["check"] == "unsteady") {
      EXPECT_THAT(unmade["reason"].get<std::string>(), HasSubstr("a rehearsal has no latency"));
      ++not_made;
    }
  EXPECT_EQ(not_made, 2 * s["results"].size());
}

TEST_F(a_rehearsal, is_marked_in_the_table_which_has_dashes_for_times) {
  auto const text = table(summary());
  EXPECT_THAT(text, StartsWith(std::string("REHEARSAL on ") + gpu));
  auto const row = text.substr(text.find("\neager.c2") + 1);
  EXPECT_THAT(row.substr(0, row.find('\n')), testing::MatchesRegex("eager.c2 +- +- +- +11 .*"));
  EXPECT_THAT(text, AllOf(HasSubstr("\neager: each stream adds 4 MiB to 0 B; c128 would not fit: 127 streams fill the "
                                    "509 MiB that the allocator can have\n"),
                          HasSubstr("a rehearsal cannot know:\n  - memory of the CUDA")));
  EXPECT_THAT(explanation(summary()), StartsWith("REHEARSAL on "));
}

TEST_F(a_rehearsal, is_marked_in_the_name_of_its_junit_suite) {
  EXPECT_THAT(junit(summary(), {}), HasSubstr(std::string("(rehearsal on ") + gpu + ")\""));
}

TEST_F(a_rehearsal, has_a_run_file_without_times_that_is_whole) {
  static_cast<void>(summary());
  auto const checked = check_run_file(folder.run_h5());
  EXPECT_THAT(checked.faults, IsEmpty());
  auto const items = h5::read_items(folder.run_h5());
  EXPECT_EQ(items.at("").text_attributes.at("rehearsed"), gpu);
  for (auto const& [path, item] : items) EXPECT_THAT(path, Not(AnyOf(EndsWith("_ns"), EndsWith("/request"))));
  EXPECT_TRUE(items.contains("eager.c2/count") && items.contains("eager.c2/soak/reserved_bytes"));
}

} // namespace
} // namespace plateau
