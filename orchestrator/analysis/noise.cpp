// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/noise.hpp"

#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <cmath>

namespace plateau {

namespace {

/// What the repeats of one mode and concurrency measured.
struct repeats_of_case {
  case_id id;
  std::vector<double> p50_ns, requests_per_second;
};

double requests_per_second(case_record const& record, latency_summary const& pooled) {
  std::int64_t wall_ns = 0;
  for (auto const& result : record.by_rank) wall_ns = std::max(wall_ns, result->measured->wall_ns);
  return static_cast<double>(pooled.count) / (static_cast<double>(wall_ns) / 1e9);
}

std::vector<repeats_of_case> collected(run_record const& run, std::span<case_latencies const> latencies) {
  std::vector<repeats_of_case> all;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    auto const& record = run.cases[i];
    if (verdict_of(record).status != case_status::passed || !latencies[i].pooled) continue;
    auto const same = [&](auto const& r) {
      return r.id.mode == record.id.mode && r.id.concurrency == record.id.concurrency;
    };
    auto at = std::ranges::find_if(all, same);
    if (at == all.end()) at = all.insert(at, {record.id, {}, {}});
    at->p50_ns.push_back(latencies[i].pooled->at[0].value);
    at->requests_per_second.push_back(requests_per_second(record, *latencies[i].pooled));
  }
  return all;
}

double spread_of(std::vector<double> const& values) {
  auto const [least, most] = std::ranges::minmax(values);
  return most > least ? most / std::max(least, 1e-9) - 1 : 0;
}

std::string percent(double share) {
  auto const tenths = std::lround(1000 * share);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

} // namespace

std::vector<noise_floor> noise_floors(run_record const& run, std::span<case_latencies const> latencies) {
  std::vector<noise_floor> floors;
  for (auto const& r : collected(run, latencies))
    if (r.p50_ns.size() >= 2)
      floors.push_back({r.id.mode, r.id.concurrency, static_cast<std::int64_t>(r.p50_ns.size()), spread_of(r.p50_ns),
                        spread_of(r.requests_per_second)});
  return floors;
}

std::string told(std::span<noise_floor const> floors) {
  if (floors.empty()) return "";
  auto const p50 = std::ranges::max(floors, {}, &noise_floor::p50_spread);
  auto const throughput = std::ranges::max(floors, {}, &noise_floor::throughput_spread);
  auto const name = [](noise_floor const& f) { return " (" + case_id{f.mode, f.concurrency, 0}.text() + ")"; };
  return "repeats of one case differ by up to " + percent(p50.p50_spread) + " in p50" + name(p50) + " and " +
         percent(throughput.throughput_spread) + " in throughput" + name(throughput) +
         ": smaller differences between two cases of this run are noise";
}

} // namespace plateau
