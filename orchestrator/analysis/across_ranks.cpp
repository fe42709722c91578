// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/across_ranks.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>
#include <utility>

namespace plateau {

namespace {

constexpr std::array event_counters{
    &counters::allocation_events, &counters::segment_alloc_events, &counters::free_events, &counters::device_mallocs,
    &counters::device_frees,      &counters::alloc_retries,        &counters::ooms};

std::vector<case_result const*> measured_ranks(case_record const& record) {
  std::vector<case_result const*> ranks;
  for (auto const& result : record.by_rank)
    if (result && result->measured) ranks.push_back(&*result);
  return ranks;
}

/// A quiet point that all ranks reached: what it is called, and each rank's counters there.
struct quiet_point {
  std::string name;
  bool equal_requests = true;
  std::vector<counters> by_rank;
};

quiet_point point(std::string name, std::vector<case_result const*> const& ranks, counters measurement::*when) {
  quiet_point p{std::move(name), true, {}};
  for (auto const* rank : ranks) p.by_rank.push_back((*rank->measured).*when);
  return p;
}

std::vector<quiet_point> quiet_points(std::vector<case_result const*> const& ranks) {
  std::vector points{point("before the timed window", ranks, &measurement::pre),
                     point("after the timed window", ranks, &measurement::post)};
  auto shortest = ranks[0]->measured->soak.size();
  for (auto const* rank : ranks) shortest = std::min(shortest, rank->measured->soak.size());
  for (std::size_t i = 0; i < shortest; ++i) {
    auto& p = points.emplace_back();
    p.name = i == 0 ? "before the soak" : "after soak window " + std::to_string(i);
    for (auto const* rank : ranks) {
      auto const& soak = rank->measured->soak[i];
      p.by_rank.push_back(soak.allocator);
      p.equal_requests = p.equal_requests && soak.requests == ranks[0]->measured->soak[i].requests;
    }
  }
  return points;
}

bool counts_events(counter_field const& field) {
  return std::ranges::find(event_counters, field.member) != event_counters.end();
}

/// The counters of which only changes since the first point are compared.
enum class changes_of { none, events, all };

// How many requests a rank serves to keep the clocks up is chance, and so is how many events it has by then.
changes_of compared_as_changes(job const& run, std::vector<case_result const*> const& ranks) {
  if (run.isolation == "run") return changes_of::all;
  auto const kept_clocks_up = [](case_result const* rank) { return rank->measured->clock_requests.has_value(); };
  return std::ranges::any_of(ranks, kept_clocks_up) ? changes_of::events : changes_of::none;
}

bool is_change(counter_field const& field, changes_of which) {
  return which == changes_of::all || (which == changes_of::events && counts_events(field));
}

void since_the_first(std::vector<quiet_point>& points, changes_of which) {
  auto const first = points[0].by_rank;
  for (auto& p : points)
    for (std::size_t rank = 0; rank < first.size(); ++rank)
      for (auto const& field : counter_fields)
        if (is_change(field, which)) p.by_rank[rank].*field.member -= first[rank].*field.member;
}

/// A counter that is not the same on all ranks.
struct difference {
  counter_field field;
  std::vector<std::size_t> odd;      // places of ranks; all when there is no usual series
  std::size_t first;                 // the point at which the first of them differs
  std::optional<std::int64_t> usual; // the others' value there
};

std::optional<difference> difference_of(counter_field const& field, std::vector<quiet_point> const& points) {
  auto const is_event = counts_events(field);
  std::map<std::vector<std::int64_t>, std::vector<std::size_t>> ranks_by_series;
  auto const ranks = points[0].by_rank.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::int64_t> series;
    for (auto const& p : points) series.push_back(is_event && !p.equal_requests ? 0 : p.by_rank[rank].*field.member);
    ranks_by_series[series].push_back(rank);
  }
  if (ranks_by_series.size() < 2) return std::nullopt;

  auto const has_ranks = [](auto const& group) { return group.second.size(); };
  auto const usual = std::ranges::max_element(ranks_by_series, {}, has_ranks);
  auto const most = has_ranks(*usual);
  auto const is_usual = std::ranges::count(ranks_by_series, most, has_ranks) == 1;
  difference d{field, {}, points.size(), std::nullopt};
  for (auto const& [series, group] : ranks_by_series) {
    if (is_usual && series == usual->first) continue;
    d.odd.insert(d.odd.end(), group.begin(), group.end());
    auto const first = std::ranges::mismatch(series, usual->first).in1 - series.begin();
    d.first = std::min(d.first, static_cast<std::size_t>(first));
  }
  std::ranges::sort(d.odd);
  if (is_usual) d.usual = usual->first[d.first];
  return d;
}

// Each value that ranks have, and which have it, in the order of ranks.
std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> values_at(difference const& d, quiet_point const& p,
                                                                          std::vector<case_result const*> const& all) {
  std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> values;
  for (auto const rank : d.odd) {
    auto const value = p.by_rank[rank].*d.field.member;
    auto at = std::ranges::find(values, value, &std::pair<std::int64_t, std::vector<std::int64_t>>::first);
    if (at == values.end()) at = values.insert(at, {value, {}});
    at->second.push_back(all[rank]->rank);
  }
  return values;
}

json evidence_of(difference const& d, std::vector<quiet_point> const& points, changes_of which,
                 std::vector<case_result const*> const& all) {
  json out{{"counter", d.field.name},
           {"since_before_the_timed_window", is_change(d.field, which)},
           {"first_difference", points[d.first].name},
           {"values", json::array()}};
  if (d.usual) out["usual"] = *d.usual;
  for (auto const& [value, ranks] : values_at(d, points[d.first], all))
    out["values"].push_back({{"value", value}, {"ranks", ranks}});
  return out;
}

// "1052672 on rank 3 (1048576 on the others)"
std::string values_told(difference const& d, std::vector<quiet_point> const& points,
                        std::vector<case_result const*> const& all) {
  constexpr std::size_t most_told = 3;
  std::string text;
  auto const values = values_at(d, points[d.first], all);
  for (auto const& [value, ranks] : values | std::views::take(most_told))
    text += (text.empty() ? "" : ", ") + std::to_string(value) + " on " + rank_list(ranks);
  if (values.size() > most_told) text += ", and so on";
  return d.usual ? text + " (" + std::to_string(*d.usual) + " on the others)" : text;
}

// All that is odd about the same ranks.
finding told(std::vector<difference> differences, std::vector<quiet_point> const& points, changes_of which,
             std::vector<case_result const*> const& all) {
  std::ranges::stable_sort(differences, {}, &difference::first);
  auto const& first = differences[0];
  finding f{checks::unequal.name, {}, "", json{{"counters", json::array()}}};
  for (auto const rank : first.odd) f.ranks.push_back(all[rank]->rank);
  f.reason = points[first.first].name + ", " + std::string(first.field.name) +
             (is_change(first.field, which) ? " has changed by " : " is ") + values_told(first, points, all);
  for (std::size_t i = 1; i < differences.size(); ++i)
    f.reason += (i == 1 ? "; they differ too in " : ", ") + std::string(differences[i].field.name);
  for (auto const& d : differences) f.evidence["counters"].push_back(evidence_of(d, points, which, all));
  return f;
}

/// A rank and its p50 in nanoseconds.
struct rank_p50 {
  std::int64_t rank;
  estimate p50;
};

std::vector<rank_p50> p50s_of(case_latencies const& latencies) {
  std::vector<rank_p50> out;
  for (std::size_t rank = 0; rank < latencies.by_rank.size(); ++rank)
    if (auto const& summary = latencies.by_rank[rank]; summary && summary->at[0].enough)
      out.push_back({static_cast<std::int64_t>(rank), summary->at[0]});
  return out;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  auto const half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_of(std::span<rank_p50 const> ranks, auto const& value) {
  std::vector<double> values;
  for (auto const& rank : ranks) values.push_back(value(rank));
  return median(std::move(values));
}

constexpr std::size_t fewest_to_score = 5;
constexpr double gap_with_score = 0.03, gap_alone = 0.10, gap_between_groups = 0.50;

// From 5 ranks on. Of few healthy ranks the score is often high by chance, since their MAD is often small by chance.
double suspicious_score(std::size_t ranks) { return 3.5 + 40.0 / static_cast<double>(ranks); }

// How many times as wide as either group the gap between them must be. Few ranks fall into tight groups by chance.
double suspicious_widths(std::size_t ranks) { return 1 + 10.0 / static_cast<double>(ranks); }

// The slowest over the fastest.
double width(std::span<rank_p50 const> slowest_first) {
  return slowest_first.front().p50.value / slowest_first.back().p50.value;
}

bool are_apart(std::span<rank_p50 const> slow, std::span<rank_p50 const> fast) {
  auto const least = slow.back().p50.value;
  auto const between = least / fast.front().p50.value;
  auto const widest = std::max(width(slow), width(fast));
  auto const is_wide = between > 1 + gap_between_groups ||
                       std::log(between) > suspicious_widths(slow.size() + fast.size()) * std::log(widest);
  return is_wide && least > (1 + gap_alone) * median_of(fast, [](auto const& r) { return r.p50.value; });
}

// Whom a rank is compared with: the fast ranks where all others are clearly apart from them, else all ranks. A few fast
// ones are no measure of the others.
std::span<rank_p50 const> usual_ranks(std::span<rank_p50 const> slowest_first) {
  auto const ranks = slowest_first.size();
  for (auto fast = (ranks + 3) / 4; fast < ranks; ++fast)
    if (are_apart(slowest_first.first(ranks - fast), slowest_first.last(fast))) return slowest_first.last(fast);
  return slowest_first;
}

/// The middle of the usual ranks.
struct typical {
  std::size_t ranks;
  double p50, high, mad; // high: of the p50's interval
};

typical typical_of(std::span<rank_p50 const> ranks) {
  auto const middle = median_of(ranks, [](auto const& r) { return r.p50.value; });
  return {ranks.size(), middle, median_of(ranks, [](auto const& r) { return static_cast<double>(*r.p50.high); }),
          median_of(ranks, [&](auto const& r) { return std::abs(r.p50.value - middle); })};
}

bool is_straggler(rank_p50 const& rank, typical const& usual, bool is_apart) {
  if (static_cast<double>(*rank.p50.low) <= usual.high) return false;
  auto const gap = rank.p50.value / usual.p50 - 1;
  if (is_apart || usual.ranks < fewest_to_score || usual.mad == 0) return gap > gap_alone;
  return gap > gap_with_score && 0.6745 * (rank.p50.value - usual.p50) / usual.mad > suspicious_score(usual.ranks);
}

} // namespace

std::vector<finding> unequal_counters(job const& run, case_record const& record) {
  auto const ranks = measured_ranks(record);
  auto const cannot_tell = [](case_result const* rank) { return rank->measured->counters_unavailable.has_value(); };
  if (run.stream_threads != "persistent" || ranks.size() < 2 || std::ranges::any_of(ranks, cannot_tell)) return {};

  auto points = quiet_points(ranks);
  auto const which = compared_as_changes(run, ranks);
  since_the_first(points, which);
  std::map<std::vector<std::size_t>, std::vector<difference>> by_odd_ranks;
  for (auto const& field : counter_fields) {
    if (field.member == &counters::peak_allocated_bytes) continue;
    if (auto d = difference_of(field, points)) by_odd_ranks[d->odd].push_back(std::move(*d));
  }
  std::vector<finding> findings;
  for (auto& [odd, differences] : by_odd_ranks) findings.push_back(told(std::move(differences), points, which, ranks));
  return findings;
}

std::vector<finding> stragglers(case_latencies const& latencies) {
  auto ranks = p50s_of(latencies);
  if (ranks.size() < 2) return {};
  std::ranges::stable_sort(ranks, std::ranges::greater{}, [](auto const& r) { return r.p50.value; });
  finding f{checks::straggler.name, {}, "", json{{"ranks", json::array()}}};
  auto const usual = typical_of(usual_ranks(ranks));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto const& rank = ranks[i];
    if (!is_straggler(rank, usual, i + usual.ranks < ranks.size())) continue;
    auto const gap = rank.p50.value / usual.p50 - 1;
    f.reason += (f.ranks.empty() ? "p50 is above the other ranks' by " : ", ") +
                std::to_string(std::lround(100 * gap)) + "% on rank " + std::to_string(rank.rank);
    f.ranks.push_back(rank.rank);
    f.evidence["ranks"].push_back({{"rank", rank.rank},
                                   {"p50_ns", rank.p50.value},
                                   {"low_ns", *rank.p50.low},
                                   {"high_ns", *rank.p50.high},
                                   {"usual_p50_ns", usual.p50},
                                   {"gap", gap}});
    if (usual.mad > 0) f.evidence["ranks"].back()["modified_z"] = 0.6745 * (rank.p50.value - usual.p50) / usual.mad;
  }
  if (f.ranks.empty()) return {};
  std::ranges::sort(f.ranks);
  return {f};
}

std::optional<spread> spread_of(run_record const& run, case_record const& record, case_latencies const& latencies) {
  std::optional<spread> s;
  double least = 0, most = 0;
  std::map<std::string, std::vector<std::int64_t>> gates_by_host;
  for (auto const* result : measured_ranks(record)) {
    auto const rank = static_cast<std::size_t>(result->rank);
    auto const& latency = latencies.by_rank[rank];
    if (!latency) continue;
    auto const p50 = latency->at[0].value;
    if (!s) least = p50;
    if (!s) s.emplace();
    least = std::min(least, p50);
    if (p50 > most) {
      most = p50;
      s->slowest_rank = result->rank;
    }
    s->max_latency_ns = std::max(s->max_latency_ns, latency->max);
    gates_by_host[machine_of(run.info, *result)].push_back(result->measured->gate_ns);
  }
  if (!s) return s;
  if (least > 0) s->skew = most / least;
  for (auto const& [host, gates] : gates_by_host) {
    if (gates.size() < 2) continue;
    auto const [first, last] = std::ranges::minmax(gates);
    s->start_skew_ns = std::max(s->start_skew_ns.value_or(0), last - first);
  }
  return s;
}

} // namespace plateau
