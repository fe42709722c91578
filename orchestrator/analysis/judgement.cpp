// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/judgement.hpp"

#include "orchestrator/analysis/across_ranks.hpp"
#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/analysis/rehearsal.hpp"
#include "orchestrator/analysis/result_summary.hpp"
#include "orchestrator/analysis/steadiness.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace plateau {

namespace {

/// A rank's series that decided, and whose it is.
struct decisive {
  std::int64_t rank;
  series_growth const* series;
};

// Of the ranks with this outcome: the series of this outcome, the fastest rise first.
std::vector<decisive> decisive_series(std::vector<rank_growth> const& growth, growth_outcome outcome) {
  std::vector<decisive> found;
  for (auto const& rank : growth) {
    if (rank.outcome != outcome) continue;
    for (auto const& series : rank.series)
      if (series.outcome == outcome) found.push_back({rank.rank, &series});
  }
  std::ranges::stable_sort(found, [](decisive const& a, decisive const& b) {
    return a.series->bytes_per_1000_requests > b.series->bytes_per_1000_requests;
  });
  return found;
}

// The operator that kept most of what a rank allocated in the tracked window; nothing when no more was allocated than
// freed.
op_events const* keeper(case_record const& record, std::int64_t rank) {
  auto const& result = record.by_rank[static_cast<std::size_t>(rank)];
  if (!result || !result->measured || !result->measured->tracked) return nullptr;
  auto const kept = [](op_events const& op) { return op.allocated_bytes - op.freed_bytes; };
  auto const& ops = result->measured->tracked->ops;
  std::int64_t balance = 0;
  for (auto const& op : ops) balance += kept(op);
  auto const most = std::ranges::max_element(ops, {}, kept);
  return balance > 0 && kept(*most) > 0 ? &*most : nullptr;
}

std::string words_for(std::string_view series) {
  constexpr std::array words{std::pair{"allocated_bytes", "live memory"},
                             std::pair{"reserved_bytes", "reserved memory"},
                             std::pair{"outside_bytes", "memory outside of the allocator"},
                             std::pair{"host_resident_bytes", "the worker's resident set"}};
  for (auto const& [name, meaning] : words)
    if (series == name) return meaning;
  return std::string(series);
}

std::string reason_of(decisive const& worst, std::vector<std::int64_t> const& ranks) {
  auto const& series = *worst.series;
  auto const* verb = series.outcome == growth_outcome::growing ? " " : ": "; // "live memory grows ..."
  return rank_list(ranks) + ": " + words_for(series.series) + verb + series.reason +
         (ranks.size() > 1 ? " (on rank " + std::to_string(worst.rank) + ", the worst)" : "");
}

void judge_growth_of(case_record const& record, growth_outcome outcome, check const& about, case_judgement& out) {
  auto const found = decisive_series(out.growth, outcome);
  if (found.empty()) return;
  finding f{about.name, {}, "", json::object()};
  for (auto const& each : found) f.ranks.push_back(each.rank);
  std::ranges::sort(f.ranks);
  f.ranks.erase(std::unique(f.ranks.begin(), f.ranks.end()), f.ranks.end());
  auto const& worst = found.front();
  f.reason = reason_of(worst, f.ranks);
  f.evidence = {{"rank", worst.rank},
                {"series", worst.series->series},
                {"bytes_per_1000_requests", number(worst.series->bytes_per_1000_requests)}};
  bool const allocators = worst.series->series == "allocated_bytes" || worst.series->series == "reserved_bytes";
  auto const* op = keeper(record, worst.rank);
  if (op != nullptr && allocators && outcome == growth_outcome::growing) {
    f.evidence["op"] = op->op;
    f.evidence["op_kept_bytes"] = op->allocated_bytes - op->freed_bytes;
    f.reason += "; kept by " + (op->op.empty() ? "code outside of any operator" : op->op);
  }
  out.findings.push_back(std::move(f));
}

void judge_churn(case_record const& record, case_judgement& out) {
  finding f{checks::churn.name, {}, "", json::object()};
  for (auto const& result : record.by_rank) {
    if (!result || !result->measured) continue;
    auto const reason = instability(*result);
    if (reason.empty()) continue;
    if (f.ranks.empty()) f.reason = reason;
    f.ranks.push_back(result->rank);
    auto const& m = *result->measured;
    f.evidence[std::to_string(result->rank)] = m.post.allocation_events - m.pre.allocation_events;
  }
  if (!f.ranks.empty()) out.findings.push_back(std::move(f));
}

void judge_skipped(case_record const& record, case_judgement& out) {
  auto const verdict = verdict_of(record);
  if (verdict.status == case_status::skipped)
    out.findings.push_back({checks::skipped.name, {}, verdict.reason, json::object()});
}

using measured_ranks = std::vector<case_result const*>;

std::string why_no_growth(measured_ranks const& ranks) {
  for (auto const* rank : ranks) {
    if (rank->measured->soak.empty()) return "no soak: growth was not judged";
    if (rank->measured->counters_unavailable) return *rank->measured->counters_unavailable;
  }
  return "";
}

std::string why_no_counters(measured_ranks const& ranks) {
  for (auto const* rank : ranks)
    if (rank->measured->counters_unavailable) return *rank->measured->counters_unavailable;
  return "";
}

std::string why_not_equal(job const& run, measured_ranks const& ranks) {
  if (ranks.size() < 2) return "one rank: nothing to compare it with";
  if (run.stream_threads != "persistent") return "fresh stream threads: how many of them run at once is chance";
  return why_no_counters(ranks);
}

std::string why_no_stragglers(case_latencies const& latencies) {
  auto const enough = [](auto const& rank) { return rank && rank->at[0].low && rank->at[0].high; };
  auto const measured = std::ranges::count_if(latencies.by_rank, [](auto const& rank) { return rank.has_value(); });
  if (measured < 2) return "one rank: nothing to compare it with";
  return std::ranges::count_if(latencies.by_rank, enough) < measured ? "too few requests for an interval of the p50"
                                                                     : "";
}

std::string why_not_steady(case_latencies const& latencies) {
  for (std::size_t rank = 0; rank < latencies.by_rank.size(); ++rank)
    if (latencies.by_rank[rank] && !latencies.steadiness_by_rank[rank])
      return "too few requests on rank " + std::to_string(rank) + " to tell whether its latency is steady";
  return "";
}

void list_what_was_not_made(run_record const& run, case_record const& record, case_latencies const& latencies,
                            case_judgement& out) {
  measured_ranks ranks;
  for (auto const& result : record.by_rank)
    if (result && result->measured) ranks.push_back(&*result);
  if (ranks.empty()) return;
  auto const add = [&](check const& c, std::string reason) {
    if (!reason.empty()) out.not_made.push_back({c.name, std::move(reason)});
  };
  add(checks::growing, why_no_growth(ranks));
  add(checks::inconclusive, why_no_growth(ranks));
  add(checks::churn, why_no_counters(ranks));
  add(checks::unequal, why_not_equal(run.run, ranks));
  std::string const no_times = run.info.rehearsed ? no_times_in_a_rehearsal : "";
  add(checks::straggler, run.info.rehearsed ? no_times : why_no_stragglers(latencies));
  add(checks::unsteady, run.info.rehearsed ? no_times : why_not_steady(latencies));
}

void append(std::vector<finding> more, case_judgement& out) {
  std::ranges::move(more, std::back_inserter(out.findings));
}

} // namespace

case_judgement judge_case(run_record const& run, case_record const& record, case_latencies const& latencies) {
  case_judgement out;
  out.growth = judge_growth(record, run.info.ranks);
  judge_growth_of(record, growth_outcome::growing, checks::growing, out);
  judge_growth_of(record, growth_outcome::inconclusive, checks::inconclusive, out);
  judge_churn(record, out);
  append(unequal_counters(run.run, record), out);
  append(stragglers(latencies), out);
  if (auto const found = unsteady(latencies.steadiness_by_rank)) out.findings.push_back(*found);
  judge_skipped(record, out);
  list_what_was_not_made(run, record, latencies, out);
  return out;
}

} // namespace plateau
