// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/analysis/summary.hpp"

#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A run in memory in which every rank has passed every case; tests then take away or change what they are about.
struct summarising : testing::Test {
  job run = synthetic_job();

  run_record record_of(std::int64_t world) {
    run_record record{synthetic_info(run, world), run, {}, {}};
    for (auto const& id : cases_of(run)) {
      auto& entry = record.cases.emplace_back(case_record{id, {}});
      for (std::int64_t rank = 0; rank < world; ++rank)
        entry.by_rank.push_back(synthetic_result(record.info, run, id, rank));
    }
    return record;
  }

  json summarised(run_record record) {
    std::vector<case_latencies> latencies;
    std::vector<case_judgement> judgements;
    for (auto& entry : record.cases) {
      latency_collector samples(entry.by_rank.size());
      for (auto& result : entry.by_rank)
        if (result && result->measured) samples.take(result->rank, *result->measured);
      latencies.push_back(samples.finish());
      judgements.push_back(judge_case(record, entry, latencies.back()));
    }
    return summary_of(record, latencies, judgements);
  }
};

// Every key of `seed` is in `ours`, in the same order, with a value of the same type.
void expect_superset(json const& seed, json const& ours, std::string const& where) {
  ASSERT_TRUE(seed.type() == ours.type() || (seed.is_number_integer() && ours.is_number_integer()))
      << where << " is " << ours.type_name() << ", the seed's is " << seed.type_name();
  if (seed.is_array() && !seed.empty()) {
    ASSERT_FALSE(ours.empty()) << where;
    expect_superset(seed[0], ours[0], where + "/0");
  }
  if (!seed.is_object()) return;
  for (auto const& [key, value] : seed.items()) {
    ASSERT_TRUE(ours.contains(key)) << where << "/" << key;
    expect_superset(value, ours[key], where + "/" + key);
  }
}

TEST_F(summarising, one_rank_gives_every_key_of_the_seeds_file_with_its_type) {
  std::ifstream file(PLATEAU_SOURCE_DIR "/tests/data/seed_result.json");
  auto const seed = json::parse(file);
  auto const ours = summarised(record_of(1));
  expect_superset(seed, ours, "");
  for (auto const& result : ours["results"]) expect_superset(seed["results"][0], result, "/results");
}

TEST_F(summarising, the_seeds_latency_and_memory_keys_are_exact) {
  std::ifstream file(PLATEAU_SOURCE_DIR "/tests/data/seed_result.json");
  auto const seed = json::parse(file)["results"][0];
  auto const ours = summarised(record_of(2))["results"][0];
  for (auto const* part : {"latency_ms", "memory_pre", "memory_post"}) {
    std::vector<std::string> theirs, mine;
    for (auto const& [key, value] : seed[part].items()) theirs.push_back(key);
    for (auto const& [key, value] : ours[part].items()) mine.push_back(key);
    EXPECT_EQ(mine, theirs) << part;
  }
}

TEST_F(summarising, of_one_rank_the_entry_is_that_ranks) {
  auto const result = summarised(record_of(1))["results"][0];
  for (auto const* key : {"total_requests", "wall_time_sec", "throughput_requests_per_sec", "latency_ms", "memory_pre",
                          "memory_post", "allocation_event_delta", "memory_stable", "latency_intervals", "churn"})
    EXPECT_EQ(result[key], result["ranks"][0][key]) << key;
}

TEST_F(summarising, counters_are_summed_and_the_longest_wall_counts) {
  auto const record = record_of(2);
  auto const result = summarised(record)["results"][0];
  auto const& a = result["ranks"][0];
  auto const& b = result["ranks"][1];
  for (auto const* when : {"memory_pre", "memory_post"})
    for (auto const& [key, value] : result[when].items())
      EXPECT_EQ(value.get<std::int64_t>(), a[when][key].get<std::int64_t>() + b[when][key].get<std::int64_t>()) << key;
  EXPECT_EQ(result["total_requests"], 80);
  EXPECT_EQ(result["requests_per_worker"], 20);
  EXPECT_EQ(result["allocation_event_delta"], 11 * 80);
  EXPECT_NE(a["wall_time_sec"], b["wall_time_sec"]);
  EXPECT_EQ(result["wall_time_sec"], std::max(a["wall_time_sec"].get<double>(), b["wall_time_sec"].get<double>()));
  EXPECT_EQ(result["throughput_requests_per_sec"], 80 / result["wall_time_sec"].get<double>());
  EXPECT_EQ(result["throughput_tokens_per_sec"], 80 / result["wall_time_sec"].get<double>() * 16);
}

TEST_F(summarising, churn_is_a_whole_number_in_the_steady_state) {
  auto const results = summarised(record_of(2))["results"];
  EXPECT_EQ(results[0]["churn"]["allocation_events_per_request"], 11);
  EXPECT_TRUE(results[0]["churn"]["allocation_events_per_request"].is_number_integer());
  EXPECT_EQ(results[0]["churn"]["window"], "last soak window");
  EXPECT_EQ(results[2]["churn"]["allocation_events_per_request"], 0);
}

TEST_F(summarising, without_a_soak_churn_is_that_of_the_timed_window) {
  auto record = record_of(1);
  record.cases[0].by_rank[0]->measured->soak.clear();
  record.cases[0].by_rank[0]->measured->post.allocation_events += 10; // one-offs: no whole number
  auto const churn = summarised(record)["results"][0]["churn"];
  EXPECT_EQ(churn["window"], "timed window");
  EXPECT_EQ(churn["allocation_events_per_request"], 11.25);
}

TEST_F(summarising, attribution_is_summed_over_ranks_and_adds_up_to_the_counter) {
  auto const attribution = summarised(record_of(2))["results"][0]["attribution"];
  EXPECT_EQ(attribution["requests"], 80);
  EXPECT_EQ(attribution["allocation_events"], 11 * 80);
  std::int64_t sum = 0;
  for (auto const& op : attribution["ops"]) sum += op["allocation_events"].get<std::int64_t>();
  EXPECT_EQ(sum, 11 * 80);
  EXPECT_EQ(attribution["ops"][0]["op"], "aten::linear/aten::addmm");
}

struct stability {
  char const* what;
  std::int64_t counters::*member;
};

TEST_F(summarising, memory_is_stable_only_without_any_event_on_any_rank) {
  auto const calm = record_of(2);
  EXPECT_EQ(summarised(calm)["results"][2]["memory_stable"], true);
  for (auto const& [what, member] :
       {stability{"allocations", &counters::allocation_events}, stability{"segments", &counters::segment_alloc_events},
        stability{"device mallocs", &counters::device_mallocs}, stability{"device frees", &counters::device_frees}}) {
    auto record = calm;
    record.cases[2].by_rank[1]->measured->post.*member += 1;
    auto const result = summarised(record)["results"][2];
    EXPECT_EQ(result["memory_stable"], false) << what;
    EXPECT_EQ(result["memory_stable_reason"], std::string("1 ") + what + " in the timed window of rank 1");
  }
}

TEST_F(summarising, counters_that_cannot_tell_give_null_with_the_reason_and_no_number) {
  auto record = record_of(2);
  record.cases[2].by_rank[1]->measured->counters_unavailable = "caching is off";
  auto const result = summarised(record)["results"][2];
  for (auto const* key : {"memory_stable", "memory_pre", "memory_post", "allocation_event_delta", "churn"})
    EXPECT_TRUE(result[key].is_null()) << key;
  EXPECT_EQ(result["memory_stable_reason"], "caching is off");
}

TEST_F(summarising, compile_applied_only_if_the_package_ran_on_every_rank) {
  auto record = record_of(2);
  record.cases[0].by_rank[0]->compile_applied = true;
  EXPECT_EQ(summarised(record)["results"][0]["compile_applied"], false);
  record.cases[0].by_rank[1]->compile_applied = true;
  EXPECT_EQ(summarised(record)["results"][0]["compile_applied"], true);
}

TEST_F(summarising, a_missing_rank_leaves_the_case_measured_but_not_passed) {
  auto record = record_of(2);
  record.cases[0].by_rank[1].reset();
  auto const summary = summarised(record);
  EXPECT_EQ(summary["status"], "partial");
  EXPECT_EQ(summary["cases"][0]["status"], "missing");
  EXPECT_EQ(summary["results"][0]["total_requests"], 40);
  EXPECT_EQ(summary["results"][0]["ranks_measured"], 1);
  EXPECT_EQ(summary["results"][0]["ranks_total"], 2);
  EXPECT_EQ(summary["missing"], json::parse(R"([{"case_id": "eager.c2", "ranks": [1]}])"));
}

TEST_F(summarising, the_gravest_status_stands_for_the_case_and_reasons_name_their_ranks) {
  auto record = record_of(4);
  auto const& id = record.cases[0].id;
  auto& ranks = record.cases[0].by_rank;
  ranks[1] = failed_result(record.info, id, 1, case_status::skipped, "no compiler");
  ranks[2] = failed_result(record.info, id, 2, case_status::crashed, "killed by SIGSEGV");
  ranks[3] = failed_result(record.info, id, 3, case_status::skipped, "no compiler");
  auto const verdict = verdict_of(record.cases[0]);
  EXPECT_EQ(verdict.status, case_status::crashed);
  EXPECT_EQ(verdict.reason, "ranks 1,3: no compiler; rank 2: killed by SIGSEGV");
}

TEST_F(summarising, a_case_that_nobody_measured_has_no_number) {
  auto record = record_of(1);
  record.cases[0].by_rank[0] = failed_result(record.info, record.cases[0].id, 0, case_status::out_of_memory, "8 GiB");
  record.cases[0].by_rank[0]->soak_so_far = {{0, 0, synthetic_counters(0), 0, 0}};
  auto const summary = summarised(record);
  for (auto const& result : summary["results"]) EXPECT_NE(result["case_id"], "eager.c2");
  EXPECT_EQ(summary["cases"][0]["status"], "out_of_memory");
  EXPECT_EQ(summary["cases"][0]["reason"], "8 GiB");
  EXPECT_EQ(summary["cases"][0]["ranks"][0]["soak"]["allocated_bytes"], json::parse("[1048576]"));
}

TEST_F(summarising, status_is_ok_partial_or_failed) {
  auto record = record_of(1);
  EXPECT_EQ(summarised(record)["status"], "ok");
  record.cases[0].by_rank[0] = failed_result(record.info, record.cases[0].id, 0, case_status::skipped, "no compiler");
  EXPECT_EQ(summarised(record)["status"], "partial");
  for (auto& entry : record.cases) entry.by_rank[0].reset();
  EXPECT_EQ(summarised(record)["status"], "failed");
}

TEST_F(summarising, meta_is_the_job_as_written_and_can_be_run_again) {
  auto const summary = summarised(record_of(1));
  EXPECT_EQ(summary["meta"]["dtype"], "torch.float32");
  EXPECT_EQ(to_json(parse_job(summary.dump(), "summary.json")), summary["meta"]);
}

TEST_F(summarising, start_skew_is_measured_within_a_host) {
  auto const ranks = summarised(record_of(4))["results"][0]["ranks"]; // two hosts of two
  std::vector<std::int64_t> skews;
  for (auto const& rank : ranks) skews.push_back(rank["start_skew_ns"].get<std::int64_t>());
  EXPECT_THAT(skews, ElementsAre(0, 1000, 0, 1000));
}

TEST_F(summarising, the_output_check_is_the_worst_over_ranks) {
  auto record = record_of(2);
  record.cases[0].by_rank[1]->outputs->relative_l2 = 5e-6;
  EXPECT_EQ(summarised(record)["results"][0]["output_check"]["relative_l2"], 5e-6);
  record.cases[0].by_rank[1]->outputs = output_check{false, "a pretend device", 0, 0, 0, {}};
  EXPECT_EQ(summarised(record)["results"][0]["output_check"],
            json::parse(R"({"checked": false, "why_not": "a pretend device"})"));
}

TEST_F(summarising, a_number_that_is_not_finite_is_null) {
  EXPECT_TRUE(summarised(record_of(1))["results"][0]["harness_ns"].is_number());
  auto record = record_of(1);
  record.cases[0].by_rank[0]->measured->wall_ns = 0;
  auto const result = summarised(record)["results"][0];
  EXPECT_TRUE(result["throughput_requests_per_sec"].is_null());
  EXPECT_THAT(result.dump(), testing::Not(HasSubstr("nan")));
}

} // namespace
} // namespace plateau
