// SPDX-License-Identifier: Apache-2.0
// A job's text and what was typed for its fields: JSON, then "field=text" after each byte 0x1e.
#include "schemas/job.hpp"
#include "tests/fuzz/fuzzing.hpp"

#include <vector>

namespace plateau::fuzzing {

namespace {

constexpr char separator = 0x1e;

std::vector<job_override> overrides_in(std::string_view typed) {
  std::vector<job_override> overrides;
  while (!typed.empty()) {
    auto const one = typed.substr(0, typed.find(separator));
    auto const equals = std::min(one.find('='), one.size());
    overrides.push_back(
        {std::string(one.substr(0, equals)), std::string(one.substr(std::min(equals + 1, one.size())))});
    typed.remove_prefix(std::min(one.size() + 1, typed.size()));
  }
  return overrides;
}

} // namespace

void fuzz_one(bytes input) {
  auto const text = text_of(input);
  auto const end = std::min(text.find(separator), text.size());
  auto const overrides = overrides_in(text.substr(std::min(end + 1, text.size())));
  try {
    auto const j = parse_job(text.substr(0, end), "job.json", overrides);
    auto const written = to_json(j);
    must(to_json(parse_job(written.dump(), "again.json")) == written, "a job that was read is read again as the same");
    must(!j.modes.empty() && !j.concurrency_levels.empty(), "a job has cases");
  } catch (job_error const& e) {
    must_be_readable(e.what());
    must(!e.problems.empty(), "a refused job has a problem");
  }
}

} // namespace plateau::fuzzing
