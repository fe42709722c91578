// SPDX-License-Identifier: Apache-2.0
// schemas/summary.schema.json describes what assemble() writes.
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "tests/support/synthetic_run.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace plateau {
namespace {

/// The schema lets later minor versions add keys. Here every key has to be described.
void refuse_unknown_keys(nlohmann::json& schema) {
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object() &&
      !schema.contains("additionalProperties") && !schema["properties"].empty())
    schema["additionalProperties"] = false;
  for (auto& part : schema)
    if (part.is_structured()) refuse_unknown_keys(part);
}

/// What is wrong with `text` by the schema, or nothing.
std::string complaint_about(std::string const& text) {
  auto document = nlohmann::json::parse(read_file(PLATEAU_SOURCE_DIR "/schemas/summary.schema.json"));
  refuse_unknown_keys(document);
  valijson::Schema schema;
  valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
  valijson::adapters::NlohmannJsonAdapter const schema_adapter(document);
  parser.populateSchema(schema_adapter, schema);

  auto const summary = nlohmann::json::parse(text);
  valijson::adapters::NlohmannJsonAdapter const target(summary);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, target, &results)) return "";
  std::string complaint;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (auto const& part : error.context) complaint += part;
    complaint += ": " + error.description + "\n";
  }
  return complaint;
}

struct summary_schema : testing::Test {
  scratch_folder scratch;
  job run = synthetic_job();
  run_folder folder = synthetic_folder(scratch.path / "run", run, 2);
};

TEST_F(summary_schema, describes_a_summary_in_which_everything_passed) {
  EXPECT_EQ(complaint_about(assemble(folder).summary.dump()), "");
}

TEST_F(summary_schema, describes_a_summary_of_every_status) {
  auto const info = synthetic_info(run, 2);
  std::int64_t rank = 0;
  for (auto const& [status, name] : names(case_status{}))
    if (status != case_status::passed && status != case_status::missing) {
      auto result = failed_result(info, {"eager", 2, 0}, rank % 2, status, std::string(name));
      result.soak_so_far = {{0, 0, synthetic_counters(0), 0, 0}};
      store(folder, result);
      EXPECT_EQ(complaint_about(assemble(folder).summary.dump()), "") << name;
      ++rank;
    }
  std::filesystem::remove(folder.raw_result({"arena", 2, 0}, 0));
  auto blind = synthetic_result(info, run, {"arena", 3, 0}, 1);
  blind.measured->counters_unavailable = "caching is off";
  store(folder, blind);
  EXPECT_EQ(complaint_about(assemble(folder, run_outcome{75, "stopped", "later"}).summary.dump()), "");
}

TEST_F(summary_schema, describes_what_surrounds_a_gpu) {
  auto info = synthetic_info(run, 2);
  info.not_comparable = "ranks 0-1 on node0 have the same GPU";
  info.ranks[0].device->visible_list = "0,1";
  info.ranks[0].device->mig = false;
  info.ranks[1].device->sensors_unavailable = "NVML cannot be loaded";
  write_run_info(folder, info);
  auto result = synthetic_result(info, run, {"eager", 2, 0}, 0);
  result.measured->clock_requests = 12;
  gpu_state const all{1980, 3201, 689'000, 61, {{"gpu_idle"}}, {{"power", 5}}, {{{42, 1 << 20}, {43, std::nullopt}}}};
  result.measured->gpu = gpu_course{all, all, all};
  store(folder, result);
  result.rank = 1;
  result.measured->gpu = gpu_course{};
  store(folder, result);
  EXPECT_EQ(complaint_about(assemble(folder).summary.dump()), "");
}

TEST_F(summary_schema, describes_the_summary_of_a_rehearsal) {
  auto info = synthetic_info(run, 2);
  info.rehearsed = "a GPU (sm_90, 10 GiB)";
  info.ranks[0].device->pretended = true;
  info.ranks[0].device->multiprocessors = 132;
  write_run_info(folder, info);
  auto compiled = synthetic_result(info, run, {"eager", 2, 0}, 0);
  compiled.package = package_info{"key", false, 2.5, "a GPU", "pretend GPU", "sm_90, 132 SMs", "node0", "2.11.0"};
  store(folder, compiled);
  EXPECT_EQ(complaint_about(assemble(folder).summary.dump()), "");
}

TEST_F(summary_schema, finds_what_is_wrong) {
  auto const good = assemble(folder).summary;
  auto const broken = [&](char const* pointer, json value) {
    auto bad = good;
    bad[json::json_pointer(pointer)] = std::move(value);
    return complaint_about(bad.dump());
  };
  EXPECT_NE(broken("/status", "fine"), "");
  EXPECT_NE(broken("/results/0/latency_ms/p50", nullptr), "");
  EXPECT_NE(broken("/results/0/total_requests", 0), "");
  EXPECT_NE(broken("/results/0/memory_stable", "yes"), "");
  EXPECT_NE(broken("/cases/0/status", "lost"), "");
  EXPECT_NE(broken("/missing", json::object()), "");
  EXPECT_NE(broken("/results/0/not_described", 1), "");
}

} // namespace
} // namespace plateau
