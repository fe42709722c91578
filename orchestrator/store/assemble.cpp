// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/assemble.hpp"

#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/analysis/judgement.hpp"
#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/run_file.hpp"
#include "orchestrator/store/stored_json.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace plateau {

namespace {

run_record read_record(run_folder const& folder, std::optional<run_outcome> outcome) {
  run_record record;
  record.info = read_run_info(folder);
  record.run = parse_job(record.info.job.dump(), folder.run_json().string());
  record.outcome = outcome ? std::move(outcome) : read_outcome(folder);
  return record;
}

std::optional<case_result> read_result(std::filesystem::path const& path, run_record const& run,
                                       std::vector<std::string>& complaints) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    return read_result_of_run(path, run.info, run.run);
  } catch (input_error const& e) {
    complaints.push_back(std::string(e.what()) + "; it is left out");
    return std::nullopt;
  }
}

// Of a rehearsal, where they mean nothing.
void drop_samples(measurement& m) {
  m.start_ns = {};
  m.latency_ns = {};
}

// Reads the attempt of a case that counts rank by rank into run.h5 and `record`, and summarises its latencies.
case_latencies assemble_case(run_folder const& folder, run_record const& run, case_record& record, run_file& file,
                             std::vector<std::string>& complaints) {
  auto const world = run.info.ranks.size();
  auto const attempt = attempt_that_counts(folder, record.id, static_cast<std::int64_t>(world)).attempt;
  auto group = file.begin(record.id);
  latency_collector latencies(world);
  for (std::size_t rank = 0; rank < world; ++rank) {
    auto const path = folder.raw_result(record.id, static_cast<std::int64_t>(rank), attempt);
    auto result = read_result(path, run, complaints);
    if (result) {
      group.add(*result);
      if (result->measured && run.info.rehearsed)
        drop_samples(*result->measured);
      else if (result->measured)
        latencies.take(result->rank, *result->measured);
    }
    record.by_rank.push_back(std::move(result));
  }
  group.finish(record);
  return latencies.finish();
}

} // namespace

assembly assemble(run_folder const& folder, std::optional<run_outcome> outcome, std::string_view blind_to) try {
  assembly out;
  out.record = read_record(folder, std::move(outcome));
  run_file file(folder, out.record.info, out.record.run);
  std::vector<case_latencies> latencies;
  std::vector<case_judgement> judgements;
  for (auto const& id : cases_of(out.record.run)) {
    auto& record = out.record.cases.emplace_back(case_record{id, {}});
    latencies.push_back(assemble_case(folder, out.record, record, file, out.complaints));
    judgements.push_back(judge_case(out.record, record, latencies.back()));
    std::erase_if(judgements.back().findings, [&](finding const& f) { return f.check == blind_to; });
  }
  out.code = exit_code_of(out.record);
  file.finish(out.code != exit_code::incomplete);
  auto summary = summary_of(out.record, latencies, judgements);
  if (out.code == exit_code::good && !failed_gates(summary, out.record.info.fail_on).empty())
    out.code = exit_code::gate_failed;
  if (auto& end = out.record.outcome; end && end->exit_code == static_cast<std::int64_t>(exit_code::good)) {
    end->exit_code = static_cast<std::int64_t>(out.code);
    summary["run"]["outcome"] = encode(*end);
  }
  out.summary = with_checksum(std::move(summary));
  write_durably(folder.summary_json(), out.summary.dump(2) + "\n");
  return out;
} catch (h5::error const& e) {
  throw std::runtime_error(folder.run_h5().string() + ": " + e.what() + "; the raw results are safe in " +
                           folder.cases().string() + ", assemble them again when this is mended");
}

} // namespace plateau
