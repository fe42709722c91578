// SPDX-License-Identifier: Apache-2.0
#include "schemas/job.hpp"
#include "tests/unit/schemas_bad_jobs.hpp"

#include <gtest/gtest.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include <filesystem>
#include <fstream>

namespace plateau {
namespace {

// A JSON Schema validator that is not ours, over the schema that ours is generated from.
class independent_validator {
public:
  independent_validator() {
    auto const document = nlohmann::json::parse(job_schema().dump());
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(document), schema_);
  }
  bool accepts(std::string_view text) const {
    auto const document = nlohmann::json::parse(text);
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
  }

private:
  valijson::Schema schema_;
};

TEST(bad_jobs, are_refused_at_the_field_that_is_wrong_and_nowhere_else) {
  for (auto const& bad : bad_jobs) try {
      parse_job(bad.text, "bad.json");
      ADD_FAILURE() << "accepted: " << bad.text;
    } catch (job_error const& e) {
      ASSERT_EQ(e.problems.size(), 1u) << bad.text << "\n" << e.what();
      EXPECT_EQ(e.problems[0].where, bad.where) << bad.text;
    }
}

TEST(bad_jobs, are_refused_by_an_independent_validator_of_the_json_schema_too) {
  independent_validator const validator;
  for (auto const& bad : bad_jobs) EXPECT_FALSE(validator.accepts(bad.text)) << bad.text;
}

// Not in the table above: the independent validator compares integers above 2^53 as doubles.
TEST(bad_jobs, include_the_first_integer_that_does_not_fit_64_bits_with_a_sign) {
  EXPECT_THROW(parse_job(R"({"random_seed": 9223372036854775808})", "bad.json"), job_error);
  EXPECT_NO_THROW(parse_job(R"({"random_seed": 9223372036854775807})", "good.json"));
}

TEST(ready_jobs, are_accepted_by_both_and_named_as_their_file) {
  independent_validator const validator;
  int jobs = 0;
  for (auto const& entry : std::filesystem::directory_iterator(std::string(PLATEAU_SOURCE_DIR) + "/jobs")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    std::string const text{std::istreambuf_iterator<char>(in), {}};
    auto const j = parse_job(text, entry.path().string());
    EXPECT_TRUE(validator.accepts(text)) << entry.path();
    EXPECT_TRUE(validator.accepts(to_json(j).dump())) << entry.path();
    EXPECT_EQ(j.name, entry.path().stem().string());
    ++jobs;
  }
  EXPECT_GE(jobs, 2);
}

std::string text_of(std::string const& file) {
  std::ifstream in(std::string(PLATEAU_SOURCE_DIR) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ready_jobs, seed_h200_asks_for_what_the_seed_s_run_says_of_itself) {
  auto const job = json::parse(text_of("jobs/seed_h200.json")),
             meta = json::parse(text_of("tests/data/seed_result.json"))["meta"];
  for (auto const& [field, value] : meta.items()) EXPECT_EQ(job.value(field, json()), value) << field;
}

// A p99 needs 368 samples for its interval to have two ends; the smoke job shows the tool at its best.
TEST(ready_jobs, smoke_cpu_takes_enough_samples_for_a_p99) {
  auto const j = parse_job(text_of("jobs/smoke_cpu.json"), "smoke_cpu.json");
  for (auto const& id : cases_of(j)) EXPECT_GE(j.requests_per_worker * id.concurrency, 368) << id.text();
}

} // namespace
} // namespace plateau
