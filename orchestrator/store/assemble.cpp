// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/assemble.hpp"

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

std::optional<case_result> read_result(run_folder const& folder, run_record const& run, case_id const& id,
                                       std::int64_t rank, std::vector<std::string>& complaints) {
  auto const path = folder.raw_result(id, rank);
  if (!std::filesystem::exists(path)) return std::nullopt;
  try {
    return read_result_of_run(path, run.info, run.run);
  } catch (input_error const& e) {
    complaints.push_back(std::string(e.what()) + "; it is left out");
    return std::nullopt;
  }
}

// Takes the samples out of a result: all latencies of its stream threads, in ascending order.
std::vector<std::int64_t> take_latencies(measurement& m) {
  std::vector<std::int64_t> all;
  for (auto const& thread : m.latency_ns) all.insert(all.end(), thread.begin(), thread.end());
  sort_times(all);
  m.latency_ns = {};
  m.start_ns = {};
  return all;
}

// Reads a case rank by rank into run.h5 and `record`, and summarises its latencies.
case_latencies assemble_case(run_folder const& folder, run_record const& run, case_record& record, run_file& file,
                             std::vector<std::string>& complaints) {
  auto const world = run.info.ranks.size();
  auto group = file.begin(record.id);
  case_latencies latencies;
  latencies.by_rank.resize(world);
  sorted_runs samples;
  for (std::size_t rank = 0; rank < world; ++rank) {
    auto result = read_result(folder, run, record.id, static_cast<std::int64_t>(rank), complaints);
    if (result) {
      group.add(*result);
      if (result->measured) {
        samples.push_back(take_latencies(*result->measured));
        latencies.by_rank[rank] = summarise(std::span(samples).last(1));
      }
    }
    record.by_rank.push_back(std::move(result));
  }
  group.finish(record);
  latencies.pooled = summarise(samples);
  return latencies;
}

} // namespace

assembly assemble(run_folder const& folder, std::optional<run_outcome> outcome) try {
  assembly out;
  out.record = read_record(folder, std::move(outcome));
  run_file file(folder, out.record.info, out.record.run);
  std::vector<case_latencies> latencies;
  for (auto const& id : cases_of(out.record.run)) {
    auto& record = out.record.cases.emplace_back(case_record{id, {}});
    latencies.push_back(assemble_case(folder, out.record, record, file, out.complaints));
  }
  auto const code = exit_code_of(out.record);
  file.finish(code != exit_code::incomplete);
  if (out.record.outcome && out.record.outcome->exit_code == static_cast<std::int64_t>(exit_code::good))
    out.record.outcome->exit_code = static_cast<std::int64_t>(code);
  out.summary = with_checksum(summary_of(out.record, latencies));
  write_durably(folder.summary_json(), out.summary.dump(2) + "\n");
  return out;
} catch (h5::error const& e) {
  throw std::runtime_error(folder.run_h5().string() + ": " + e.what() + "; the raw results are safe in " +
                           folder.cases().string() + ", assemble them again when this is mended");
}

} // namespace plateau
