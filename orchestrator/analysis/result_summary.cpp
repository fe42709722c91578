// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/result_summary.hpp"

#include "orchestrator/analysis/across_ranks.hpp"
#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/gpu_course.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace plateau {

namespace {

constexpr double ns_per_ms = 1e6, ns_per_second = 1e9;
constexpr auto percentile_method = "linear interpolation of order statistics (Hyndman-Fan 7) over the raw samples of "
                                   "all measured ranks";

// The seed's keys of memory_pre and memory_post.
constexpr std::array seed_counters{&counters::allocated_bytes, &counters::reserved_bytes,
                                   &counters::peak_allocated_bytes, &counters::allocation_events,
                                   &counters::segment_alloc_events};

/// The measured ranks of a case that an entry is about: all of them, or one.
struct scope {
  job const& run;
  case_record const& record;
  std::vector<case_result const*> ranks; // each with a measurement
};

counters added(counters a, counters const& b) {
  for (auto const& field : counter_fields) a.*field.member += b.*field.member;
  return a;
}

counters difference(counters a, counters const& b) {
  for (auto const& field : counter_fields) a.*field.member -= b.*field.member;
  return a;
}

counters total(scope const& s, counters measurement::*when) {
  counters sum;
  for (auto const* rank : s.ranks) sum = added(sum, (*rank->measured).*when);
  return sum;
}

std::optional<std::string> counters_unavailable(scope const& s) {
  for (auto const* rank : s.ranks)
    if (rank->measured->counters_unavailable) return rank->measured->counters_unavailable;
  return std::nullopt;
}

std::string_view name_of_counter(std::int64_t counters::*member) {
  return std::ranges::find(counter_fields, member, &counter_field::member)->name;
}

json seed_memory(counters const& c) {
  auto out = json::object();
  for (auto const member : seed_counters) out[std::string(name_of_counter(member))] = c.*member;
  return out;
}

// Null where there are no times.
using some_latency = std::optional<latency_summary>;

json latency_ms(some_latency const& latency) {
  if (!latency) return nullptr;
  auto const& s = *latency;
  auto out = json::object();
  for (auto const name : {"p50", "p95", "p99"}) {
    auto const at = std::ranges::find(percentiles, name, &percentile::name) - percentiles.begin();
    out[name] = s.at[static_cast<std::size_t>(at)].value / ns_per_ms;
  }
  out["mean"] = s.mean / ns_per_ms;
  out["min"] = static_cast<double>(s.min) / ns_per_ms;
  out["max"] = static_cast<double>(s.max) / ns_per_ms;
  return out;
}

json bound(std::optional<std::int64_t> const& ns) {
  return ns ? json(static_cast<double>(*ns) / ns_per_ms) : json(nullptr);
}

json latency_intervals(some_latency const& latency) {
  if (!latency) return nullptr;
  auto const& s = *latency;
  json out{{"confidence", 0.95}, {"assumes", "independent samples"}};
  for (std::size_t i = 0; i < percentiles.size(); ++i) {
    auto const& e = s.at[i];
    out[std::string(percentiles[i].name)] = {{"value_ms", e.value / ns_per_ms},
                                             {"low_ms", bound(e.low)},
                                             {"high_ms", bound(e.high)},
                                             {"samples_needed", e.samples_needed},
                                             {"enough_samples", e.enough}};
  }
  return out;
}

// Events per request: a whole number in a steady state, and then written as one.
json per_request(std::int64_t events, std::int64_t requests) {
  if (events % requests == 0) return events / requests;
  return static_cast<double>(events) / static_cast<double>(requests);
}

/// The counted events of a window and the requests that it held.
struct window {
  counters delta;
  std::int64_t requests = 0;
};

// The last soak window of every rank together; nothing when a rank has none.
std::optional<window> last_soak_window(scope const& s) {
  window w;
  for (auto const* rank : s.ranks) {
    auto const& soak = rank->measured->soak;
    if (soak.size() < 2) return std::nullopt;
    auto const& before = soak[soak.size() - 2];
    w.delta = added(w.delta, difference(soak.back().allocator, before.allocator));
    w.requests += soak.back().requests - before.requests;
  }
  return w.requests > 0 ? std::optional(w) : std::nullopt;
}

json churn_of(scope const& s, std::int64_t timed_requests) {
  auto const last = last_soak_window(s);
  auto w = last ? *last : window{difference(total(s, &measurement::post), total(s, &measurement::pre)), timed_requests};
  return {{"allocation_events_per_request", per_request(w.delta.allocation_events, w.requests)},
          {"free_events_per_request", per_request(w.delta.free_events, w.requests)},
          {"segment_alloc_events_per_request", per_request(w.delta.segment_alloc_events, w.requests)},
          {"window", last ? "last soak window" : "timed window"}};
}

std::string first_instability(scope const& s) {
  for (auto const* rank : s.ranks)
    if (auto reason = instability(*rank); !reason.empty()) return reason;
  return "";
}

void add_memory(json& out, scope const& s) {
  auto const unavailable = counters_unavailable(s);
  auto const pre = total(s, &measurement::pre), post = total(s, &measurement::post);
  auto const delta = difference(post, pre);
  out["memory_pre"] = unavailable ? json(nullptr) : seed_memory(pre);
  out["memory_post"] = unavailable ? json(nullptr) : seed_memory(post);
  out["allocation_event_delta"] = unavailable ? json(nullptr) : json(delta.allocation_events);
  out["segment_alloc_event_delta"] = unavailable ? json(nullptr) : json(delta.segment_alloc_events);
  auto const unstable = first_instability(s);
  out["memory_stable"] = unavailable ? json(nullptr) : json(unstable.empty());
  out["memory_stable_reason"] = unavailable        ? *unavailable
                                : unstable.empty() ? "no allocation, segment, device malloc or free in the timed window"
                                                   : unstable;
}

json attribution_of(scope const& s) {
  std::vector<op_events> ops; // in the order of first appearance
  std::map<std::string, std::size_t> place;
  window counted;
  for (auto const* rank : s.ranks) {
    if (!rank->measured->tracked) continue;
    auto const& tracked = *rank->measured->tracked;
    counted.requests += tracked.requests;
    counted.delta = added(counted.delta, difference(tracked.post, tracked.pre));
    for (auto const& op : tracked.ops) {
      auto const [at, is_new] = place.try_emplace(op.op, ops.size());
      if (is_new) ops.push_back({op.op});
      auto& sum = ops[at->second];
      sum.allocation_events += op.allocation_events;
      sum.allocated_bytes += op.allocated_bytes;
      sum.free_events += op.free_events;
      sum.freed_bytes += op.freed_bytes;
    }
  }
  return {{"requests", counted.requests},
          {"allocation_events", counted.delta.allocation_events}, // what the ops add up to
          {"free_events", counted.delta.free_events},
          {"allocated_bytes", counted.delta.allocated_bytes}, // what was allocated and not freed
          {"ops", encode(ops)}};
}

bool any_tracked(scope const& s) {
  return std::ranges::any_of(s.ranks, [](auto const* rank) { return rank->measured->tracked.has_value(); });
}

// The worst over ranks.
json outputs_of(scope const& s) {
  json out{{"checked", true}};
  double l2 = 0, largest = 0, tolerance = 0;
  auto const worse = [](double a, double b) { return std::isnan(b) || b > a ? b : a; };
  for (auto const* rank : s.ranks) {
    if (!rank->outputs || !rank->outputs->checked)
      return {{"checked", false},
              {"why_not", rank->outputs ? rank->outputs->why_not.value_or("") : "the worker sent no check"}};
    l2 = worse(l2, rank->outputs->relative_l2);
    largest = worse(largest, rank->outputs->relative_max);
    tolerance = std::max(tolerance, rank->outputs->tolerance);
  }
  out["relative_l2"] = number(l2);
  out["relative_max"] = number(largest);
  out["tolerance"] = number(tolerance);
  return out;
}

json harness_ns(scope const& s) {
  double worst = 0;
  for (auto const* rank : s.ranks) worst = std::max(worst, rank->measured->harness_ns);
  return number(worst);
}

std::optional<std::string> arena_kind(scope const& s) {
  for (auto const* rank : s.ranks)
    if (rank->arena_kind) return rank->arena_kind;
  return std::nullopt;
}

double longest_wall_time_sec(scope const& s) {
  std::int64_t wall_ns = 0;
  for (auto const* rank : s.ranks) wall_ns = std::max(wall_ns, rank->measured->wall_ns);
  return static_cast<double>(wall_ns) / ns_per_second;
}

// The keys that an entry has for all ranks together and for each one: the seed's first, in its order.
json common_keys(scope const& s, some_latency const& latency) {
  auto const threads = s.record.id.concurrency * static_cast<std::int64_t>(s.ranks.size());
  auto const requests = latency ? latency->count : threads * s.run.requests_per_worker;
  auto const wall = longest_wall_time_sec(s);
  auto const rate = static_cast<double>(requests) / wall;
  auto const timed = [&](json value) { return latency ? std::move(value) : json(nullptr); };
  json out{{"mode", s.record.id.mode},
           {"concurrency", s.record.id.concurrency},
           {"requests_per_worker", requests / threads},
           {"total_requests", requests},
           {"wall_time_sec", timed(wall)},
           {"throughput_requests_per_sec", timed(number(rate))},
           {"latency_ms", latency_ms(latency)}};
  add_memory(out, s);
  out["compile_applied"] = std::ranges::all_of(s.ranks, &case_result::compile_applied);
  out["throughput_tokens_per_sec"] = timed(number(rate * static_cast<double>(s.run.batch * s.run.seq_len)));
  out["latency_intervals"] = latency_intervals(latency);
  out["churn"] = counters_unavailable(s) ? json(nullptr) : churn_of(s, requests);
  if (any_tracked(s)) out["attribution"] = attribution_of(s);
  if (auto const kind = arena_kind(s)) out["arena_kind"] = *kind;
  out["output_check"] = outputs_of(s);
  out["harness_ns"] = timed(harness_ns(s));
  return out;
}

// When the first gate of each machine opened; clocks of different machines cannot be compared.
using gates_by_machine = std::map<std::string, std::int64_t>;

gates_by_machine first_gates(run_record const& run, scope const& all) {
  gates_by_machine first;
  for (auto const* rank : all.ranks) {
    auto const gate = rank->measured->gate_ns;
    auto& earliest = first.emplace(machine_of(run.info, *rank), gate).first->second;
    earliest = std::min(earliest, gate);
  }
  return first;
}

json series_entry(series_growth const& s) {
  json out{{"series", s.series},
           {"outcome", name_of(s.outcome)},
           {"reason", s.reason},
           {"bytes_per_1000_requests", number(s.bytes_per_1000_requests)}};
  auto const add = [&out](char const* key, auto const& value) {
    if (value) out[key] = *value;
  };
  add("low", s.low);
  add("high", s.high);
  add("plateau_from", s.plateau_from);
  add("onset", s.onset);
  add("windows_needed", s.windows_needed);
  add("seconds_to_full", s.seconds_to_full);
  return out;
}

json growth_on_rank(case_judgement const& judgement, std::int64_t rank) {
  auto const found = std::ranges::find(judgement.growth, rank, &rank_growth::rank);
  if (found == judgement.growth.end()) return nullptr;
  json out{{"outcome", name_of(found->outcome)}, {"series", json::array()}};
  for (auto const& series : found->series) out["series"].push_back(series_entry(series));
  return out;
}

// How much a series says of its case: the gravest outcome first, then the fastest rise. The noise of a series that is
// level says nothing, so that of these the live bytes speak, which are exact.
auto weight(series_growth const& s) {
  bool const level = s.outcome == growth_outcome::plateau;
  return std::tuple(s.outcome, level && s.series == "allocated_bytes", s.bytes_per_1000_requests);
}

// The series that says most, of all ranks. A plateau begins where the last of them does.
json growth_of(case_judgement const& judgement) {
  series_growth const* worst = nullptr;
  std::int64_t worst_rank = 0, plateau_from = 0;
  for (auto const& rank : judgement.growth)
    for (auto const& series : rank.series) {
      if (worst == nullptr || weight(series) > weight(*worst)) {
        worst = &series;
        worst_rank = rank.rank;
      }
      plateau_from = std::max(plateau_from, series.plateau_from.value_or(0));
    }
  if (worst == nullptr) return nullptr;
  auto out = series_entry(*worst);
  out["rank"] = worst_rank;
  if (worst->outcome == growth_outcome::plateau) out["plateau_from"] = plateau_from;
  return out;
}

json spread_entry(std::optional<spread> const& s) {
  if (!s) return nullptr;
  return {{"skew", number(s->skew)},
          {"slowest_rank", s->slowest_rank},
          {"max_latency_ms", static_cast<double>(s->max_latency_ns) / ns_per_ms},
          {"start_skew_ns", s->start_skew_ns ? json(*s->start_skew_ns) : json(nullptr)}};
}

json steadiness_entry(std::optional<steadiness> const& s) {
  if (!s) return nullptr;
  return {{"course", name_of(s->course)},
          {"change", number(s->change)},
          {"from", s->from},
          {"to", s->to},
          {"from_ns", s->from_ns},
          {"noise", number(s->noise)},
          {"detectable", number(s->detectable)}};
}

json rank_entry(run_record const& run, scope const& all, case_result const& result, gates_by_machine const& first,
                case_latencies const& latencies, case_judgement const& judgement) {
  auto const place = static_cast<std::size_t>(result.rank);
  scope const one{run.run, all.record, {&result}};
  auto const& latency = latencies.by_rank[place];
  json out{{"rank", result.rank}};
  out.update(common_keys(one, latency));
  out["start_skew_ns"] =
      latency ? json(result.measured->gate_ns - first.at(machine_of(run.info, result))) : json(nullptr);
  out["outside_pre_bytes"] = result.measured->outside_pre_bytes;
  out["outside_post_bytes"] = result.measured->outside_post_bytes;
  if (result.measured->clock_requests) out["clock_requests"] = *result.measured->clock_requests;
  if (result.measured->gpu) out["gpu"] = gpu_entry(*result.measured);
  if (result.outputs) out["output_check"]["digests"] = result.outputs->digests;
  if (result.package) out["package"] = encode(*result.package);
  out["soak"] = soak_columns(result.measured->soak, latency.has_value());
  out["growth"] = growth_on_rank(judgement, result.rank);
  out["steadiness"] = steadiness_entry(latencies.steadiness_by_rank[place]);
  return out;
}

} // namespace

std::string instability(case_result const& result) {
  constexpr std::array watched{
      std::pair{&counters::allocation_events, "allocations"}, std::pair{&counters::segment_alloc_events, "segments"},
      std::pair{&counters::device_mallocs, "device mallocs"}, std::pair{&counters::device_frees, "device frees"}};
  if (result.measured->counters_unavailable) return "";
  auto const delta = difference(result.measured->post, result.measured->pre);
  for (auto const& [member, words] : watched)
    if (delta.*member != 0)
      return std::to_string(delta.*member) + " " + words + " in the timed window of rank " +
             std::to_string(result.rank);
  return "";
}

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json soak_columns(std::span<memory_point const> points, bool timed) {
  constexpr std::array columns{&counters::allocated_bytes, &counters::reserved_bytes, &counters::allocation_events,
                               &counters::free_events, &counters::segment_alloc_events};
  json out{{"requests", json::array()}};
  if (timed) out["elapsed_sec"] = json::array();
  for (auto const& point : points) {
    out["requests"].push_back(point.requests);
    if (timed) out["elapsed_sec"].push_back(static_cast<double>(point.elapsed_ns) / ns_per_second);
    for (auto const member : columns) out[std::string(name_of_counter(member))].push_back(point.allocator.*member);
    out["outside_bytes"].push_back(point.outside_bytes);
    out["host_resident_bytes"].push_back(point.host_resident_bytes);
  }
  return out;
}

json result_summary(run_record const& run, case_record const& record, case_latencies const& latencies,
                    case_judgement const& judgement) {
  scope all{run.run, record, {}};
  for (auto const& result : record.by_rank)
    if (result && result->measured) all.ranks.push_back(&*result);
  auto out = common_keys(all, latencies.pooled);
  out["case_id"] = record.id.text();
  out["repeat"] = record.id.repeat;
  out["growth"] = growth_of(judgement);
  out["across_ranks"] = spread_entry(spread_of(run, record, latencies));
  out["percentile_method"] = latencies.pooled ? json(percentile_method) : json(nullptr);
  out["ranks_measured"] = all.ranks.size();
  out["ranks_total"] = record.by_rank.size();
  out["ranks"] = json::array();
  auto const first = first_gates(run, all);
  for (auto const* rank : all.ranks) out["ranks"].push_back(rank_entry(run, all, *rank, first, latencies, judgement));
  return out;
}

} // namespace plateau
