// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/summary.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/fabric.hpp"
#include "orchestrator/analysis/noise.hpp"
#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/analysis/result_summary.hpp"
#include "orchestrator/analysis/stream_cost.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace plateau {

namespace {

json case_on_rank(std::optional<case_result> const& result, std::int64_t rank) {
  json out{{"rank", rank}, {"status", name_of(status_on(result))}, {"reason", reason_on(result)}};
  if (!result) return out;
  out["attempt"] = attempt_of(*result);
  out["started"] = result->started;
  out["seconds"] = number(result->seconds);
  out["warnings"] = result->warnings;
  if (!result->soak_so_far.empty()) out["soak"] = soak_columns(result->soak_so_far);
  return out;
}

json case_entry(case_record const& record) {
  auto const verdict = verdict_of(record);
  json out{{"case_id", record.id.text()},
           {"mode", record.id.mode},
           {"concurrency", record.id.concurrency},
           {"repeat", record.id.repeat},
           {"status", name_of(verdict.status)},
           {"reason", verdict.reason},
           {"ranks", json::array()}};
  for (std::size_t rank = 0; rank < record.by_rank.size(); ++rank)
    out["ranks"].push_back(case_on_rank(record.by_rank[rank], static_cast<std::int64_t>(rank)));
  return out;
}

json missing_of(run_record const& run) {
  auto out = json::array();
  for (auto const& record : run.cases) {
    auto ranks = json::array();
    for (std::size_t rank = 0; rank < record.by_rank.size(); ++rank)
      if (status_on(record.by_rank[rank]) == case_status::missing) ranks.push_back(rank);
    if (!ranks.empty()) out.push_back({{"case_id", record.id.text()}, {"ranks", std::move(ranks)}});
  }
  return out;
}

json run_entry(run_record const& run) {
  auto out = encode(run.info);
  for (auto const* elsewhere : {"job", "ranks", "versions", "warnings", "fabric"}) out.erase(elsewhere);
  out["warnings"] = run.info.warnings;
  out["world_size"] = run.info.ranks.size();
  auto moved = json::array();
  for (auto const& m : moves_of(run))
    moved.push_back({{"run_id", m.run_id},
                     {"attempt", m.attempt},
                     {"cases", m.cases},
                     {"other", m.other},
                     {"others", m.others},
                     {"what", m.what},
                     {"told", told(m)}});
  if (!moved.empty()) out["moved"] = std::move(moved);
  if (out.contains("merged_from"))
    for (auto& source : out["merged_from"]) source.erase("fabric"); // of each run's own summary
  if (run.outcome) out["outcome"] = encode(*run.outcome);
  return out;
}

json environment_of(run_record const& run) {
  std::set<std::string> hosts;
  std::map<std::string, std::int64_t> devices;
  json worker_versions = json::object();
  for (auto const& rank : run.info.ranks) {
    hosts.insert(rank.host_id);
    if (!rank.device) continue;
    ++devices[rank.device->name];
    if (worker_versions.empty()) worker_versions = encode(rank.device->versions);
  }
  return {{"versions", encode(run.info.versions)}, // of the ranks
          {"worker_versions", worker_versions},    // of the first worker; each rank's are in ranks[]
          {"host_count", hosts.size()},
          {"devices", json(devices)}};
}

char const* status_of(run_record const& run, json const& results) {
  auto const passed = [](case_record const& record) { return verdict_of(record).status == case_status::passed; };
  if (std::ranges::all_of(run.cases, passed)) return "ok";
  return results.empty() ? "failed" : "partial";
}

json noise_of(run_record const& run, std::span<case_latencies const> latencies) {
  auto const floors = noise_floors(run, latencies);
  auto out = json::array();
  for (auto const& f : floors)
    out.push_back({{"mode", f.mode},
                   {"concurrency", f.concurrency},
                   {"repeats", f.repeats},
                   {"p50_spread", number(f.p50_spread)},
                   {"throughput_spread", number(f.throughput_spread)}});
  return {{"floors", std::move(out)}, {"told", told(floors)}};
}

json stream_costs_entry(run_record const& run) {
  auto const costs = stream_costs_of(run);
  auto out = json::array();
  for (auto const& c : costs.modes)
    out.push_back({{"mode", c.mode},
                   {"concurrency", c.concurrency},
                   {"reserved_bytes", c.reserved_bytes},
                   {"bytes_per_stream", number(c.bytes_per_stream)},
                   {"bytes_at_none", number(c.bytes_at_none)},
                   {"residual_bytes", number(c.residual_bytes)},
                   {"capacity_bytes", c.capacity_bytes ? json(*c.capacity_bytes) : json(nullptr)},
                   {"most_streams", c.most_streams ? json(*c.most_streams) : json(nullptr)},
                   {"told", told(c)}});
  return {{"modes", std::move(out)}, {"why_none", costs.why_none}};
}

void add_findings(json& to, case_id const& id, std::span<finding const> findings) {
  for (auto const& f : findings)
    to.push_back({{"case_id", id.text()},
                  {"check", f.check},
                  {"ranks", f.ranks},
                  {"reason", f.reason},
                  {"evidence", f.evidence}});
}

void add_unmade(json& to, case_id const& id, std::span<unmade const> not_made) {
  for (auto const& u : not_made) to.push_back({{"case_id", id.text()}, {"check", u.check}, {"reason", u.reason}});
}

} // namespace

json summary_of(run_record const& run, std::span<case_latencies const> latencies,
                std::span<case_judgement const> judgements) {
  auto results = json::array(), cases = json::array(), ranks = json::array(), findings = json::array(),
       not_made = json::array();
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    cases.push_back(case_entry(run.cases[i]));
    if (latencies[i].pooled) results.push_back(result_summary(run, run.cases[i], latencies[i], judgements[i]));
    add_findings(findings, run.cases[i].id, judgements[i].findings);
    add_unmade(not_made, run.cases[i].id, judgements[i].not_made);
  }
  for (auto const& rank : run.info.ranks) ranks.push_back(encode(rank));
  return {{"schema", summary_format.text()},
          {"status", status_of(run, results)},
          {"meta", run.info.job},
          {"results", std::move(results)},
          {"cases", std::move(cases)},
          {"missing", missing_of(run)},
          {"findings", std::move(findings)},
          {"not_made", std::move(not_made)},
          {"noise", noise_of(run, latencies)},
          {"memory_per_stream", stream_costs_entry(run)},
          {"fabric", fabric_entry(run.info.fabric.value_or(
                         fabric_record{fabric_status::not_checked, "the run is older than the check", {}}))},
          {"run", run_entry(run)},
          {"environment", environment_of(run)},
          {"ranks", std::move(ranks)}};
}

} // namespace plateau
