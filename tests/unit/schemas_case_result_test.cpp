// SPDX-License-Identifier: Apache-2.0
#include "schemas/case_result.hpp"
#include "tests/unit/schemas_samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace plateau {
namespace {

using testing::HasSubstr;

// The reason for which a result is refused after a change.
std::string refusal_after(std::function<void(case_result&)> const& change) {
  auto result = passed_result();
  change(result);
  try {
    read_case_result(encode(result));
  } catch (format_error const& e) {
    return e.what();
  }
  return "accepted";
}

TEST(case_result, is_read_back_from_what_was_written) {
  auto const result = passed_result();
  EXPECT_EQ(encode(read_case_result(encode(result))), encode(result));
}

TEST(case_result, that_failed_needs_no_measurement) {
  EXPECT_EQ(refusal_after([](case_result& r) {
              r.status = case_status::crashed;
              r.reason = "killed by signal 11";
              r.measured.reset();
              r.soak_so_far = {{}, {}};
            }),
            "accepted");
}

TEST(case_result, refuses_a_contradiction) {
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured.reset(); }), HasSubstr("/measured: present exactly when"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.status = case_status::failed; }), HasSubstr("is failed"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.id.concurrency = 3; }), HasSubstr("series of 2 stream threads"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured->start_ns.pop_back(); }), HasSubstr("compiled.c2 has 2"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured->start_ns[1].pop_back(); }), HasSubstr("stream thread 1"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured->latency_ns[0][2] = -1; }), HasSubstr("negative time"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured->start_ns[0][2] = -1; }), HasSubstr("negative time"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured->wall_ns = -1; }), HasSubstr("/measured/wall_ns"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.measured->tracked->requests = 0; }),
              HasSubstr("/measured/attribution/requests: 0; the tracked window has at least 1"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.rank = -1; }), HasSubstr("/rank"));
}

TEST(case_result, refuses_an_id_that_is_none) {
  EXPECT_THAT(refusal_after([](case_result& r) { r.id.mode = "../eager"; }), HasSubstr("is no case id"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.id.mode = ""; }), HasSubstr("is no case id"));
  EXPECT_THAT(refusal_after([](case_result& r) { r.id.repeat = -1; }), HasSubstr("is no case id"));
}

TEST(case_result, refuses_a_newer_format) {
  EXPECT_THAT(refusal_after([](case_result& r) { r.schema = "plateau.case_result/2.0"; }), HasSubstr("newer plateau"));
}

TEST(counters, are_all_in_the_one_table) {
  EXPECT_EQ(counter_fields.size() * sizeof(std::int64_t), sizeof(counters));
  auto const document = encode(counters{});
  EXPECT_EQ(document.size(), counter_fields.size());
}

} // namespace
} // namespace plateau
