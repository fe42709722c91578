// SPDX-License-Identifier: Apache-2.0
// judge RANKS CASES REQUESTS SAMPLES: makes up the results of a run, four stream threads a rank, one case after the
// other, and judges them. Writes the pooled latencies of the last case to the file SAMPLES (int64, nanoseconds) and
// prints as JSON the seconds that all of the judging took, and those that the last case's exact pooled percentiles
// took.
#include "orchestrator/analysis/summary.hpp"
#include "tests/support/synthetic_run.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

using namespace plateau;
using seconds = std::chrono::duration<double>;

namespace {

seconds now() { return std::chrono::steady_clock::now().time_since_epoch(); }

std::vector<std::vector<std::int64_t>> copy_samples(case_record const& record, char const* file) {
  std::ofstream out(file, std::ios::binary);
  std::vector<std::vector<std::int64_t>> all;
  for (auto const& result : record.by_rank) {
    auto& rank = all.emplace_back();
    for (auto const& thread : result->measured->latency_ns) rank.insert(rank.end(), thread.begin(), thread.end());
    out.write(reinterpret_cast<char const*>(rank.data()), static_cast<std::streamsize>(rank.size() * sizeof rank[0]));
  }
  return all;
}

} // namespace

int main(int, char** arguments) {
  auto j = synthetic_job();
  j.modes = {"eager"};
  j.concurrency_levels = {4};
  j.soak.windows = 12;
  auto const ranks = std::atoll(arguments[1]);
  j.repeats = std::atoll(arguments[2]);
  j.requests_per_worker = std::atoll(arguments[3]) / 4;
  run_record run{synthetic_info(j, ranks), j, {}, {}};
  std::vector<case_latencies> latencies;
  std::vector<case_judgement> judgements;
  std::vector<std::vector<std::int64_t>> last;
  seconds judging{0};
  for (auto const& id : cases_of(j)) {
    auto& record = run.cases.emplace_back(case_record{id, {}});
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      record.by_rank.emplace_back(synthetic_result(run.info, j, id, rank));
    if (id.repeat == j.repeats) last = copy_samples(record, arguments[4]);
    auto const began = now();
    latency_collector samples(static_cast<std::size_t>(ranks));
    for (auto& result : record.by_rank) samples.take(result->rank, *result->measured);
    latencies.push_back(samples.finish());
    judgements.push_back(judge_case(run, record, latencies.back()));
    judging += now() - began;
  }
  auto began = now();
  auto const summary = summary_of(run, latencies, judgements);
  judging += now() - began;

  began = now();
  for (auto& rank : last) sort_times(rank);
  auto const pooled = summarise(last);
  auto const pooling = now() - began;
  std::printf("{\"judging\": %.6f, \"percentiles\": %.6f, \"p99\": %.3f, \"cases\": %zu}\n", judging.count(),
              pooling.count(), pooled->at[2].value, summary["results"].size());
}
