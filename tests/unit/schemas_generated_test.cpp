// SPDX-License-Identifier: Apache-2.0
// Files that are generated from the job's table and checked in. UPDATE_GENERATED=1 script/test -R generated
// rewrites them.
#include "schemas/check_value.hpp"
#include "schemas/codec.hpp"
#include "schemas/injection.hpp"
#include "schemas/job.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace plateau {
namespace {

void expect_file(std::string const& path, std::string const& generated) {
  auto const full = std::string(PLATEAU_SOURCE_DIR) + "/" + path;
  if (std::getenv("UPDATE_GENERATED")) std::ofstream(full, std::ios::binary) << generated;
  std::ifstream in(full, std::ios::binary);
  std::string const there{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(there == generated) << path << " is not what the job's table says; UPDATE_GENERATED=1 script/test -R "
                                  << "generated writes it anew";
}

// What a field may hold, with the values of its own fields where it has some.
std::string values_of(json const& schema) {
  auto const& properties = schema.contains("properties") ? schema["properties"] : json::object();
  if (properties.empty()) return needed(schema);
  std::string text;
  for (auto const& [key, value] : properties.items())
    text += (text.empty() ? "" : "; ") + ("`" + key + "`: ") + needed(value);
  return text;
}

std::string default_of(job_field const& field) {
  if (field.name == "name") return "the file's stem";
  auto const fallback = field.get(job{});
  return fallback.is_null() ? "by device" : "`" + fallback.dump() + "`";
}

std::string faults_section() {
  std::string section =
      "\n## Planted faults\n\n"
      "`inject` plants faults in the worker for real, so that you can see each verdict fail before you trust it: "
      "`KIND` or\n`KIND:key=value,...`, as in `--inject leak:rank=1,case=eager.c4,bytes=4096,every=50`. Each "
      "`--inject` "
      "adds one; a JSON\nlist stands for all of them. Every kind takes `rank` (without: every rank), `case` (every "
      "case) "
      "and `after`: a fault acts\nfrom the timed window on, once a stream thread has served so many requests (0). leak "
      "and "
      "slow act on every stream thread,\nthe others once, on the first. A result with a planted fault says so among "
      "its "
      "warnings.\n\n"
      "| kind | what happens | its own keys |\n|---|---|---|\n";
  for (auto const& entry : fault_entries()) {
    auto own = entry.schema;
    for (auto const* const common : {"rank", "case", "after"}) own["properties"].erase(common);
    section += "| `" + std::string(name_of(entry.kind)) + "` | " + std::string(entry.help) + " | " +
               (own["properties"].empty() ? "" : values_of(own)) + " |\n";
  }
  return section;
}

std::string job_page() {
  std::string page = "# The job\n\n"
                     "<!-- Generated from the field table in schemas/job.cpp; see CONTRIBUTING.md. -->\n\n"
                     "A job is a JSON object of these fields, all of them optional: `{}` is a job. Each is a flag too: "
                     "`--hidden 256`,\n`--modes eager,arena`, `--soak windows=4`; a flag wins over the file. A summary "
                     "of plateau's, and the result file of the\nbenchmark it grew from, are accepted as a job: their "
                     "`meta` is read. `schemas/job.schema.json` is the same as a JSON\nSchema.\n\n"
                     "| field | values | default | meaning |\n|---|---|---|---|\n";
  for (auto const& field : job_fields())
    page += "| `" + std::string(field.name) + "` | " + values_of(field.schema) + " | " + default_of(field) + " | " +
            std::string(field.help) + " |\n";
  page +=
      "\nLimits that join fields: a case times at most 2^25 requests on a rank; batch x seq_len x 4 x hidden "
      "and batch x batch\nare at most 2^30 elements. A soak has requests_per_window or seconds, not both; as a flag "
      "either\ntakes the other's place. The tracked window after a soak by seconds has a quarter of "
      "requests_per_worker, at least 10 and\nat most 1000, per stream thread.\n";
  return page + faults_section();
}

TEST(generated, job_schema_json_is_the_jobs_table) {
  expect_file("schemas/job.schema.json", job_schema().dump(2) + "\n");
}

TEST(generated, the_page_of_the_job_is_the_jobs_table) { expect_file("docs/job.md", job_page()); }

} // namespace
} // namespace plateau
