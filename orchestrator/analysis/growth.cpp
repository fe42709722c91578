// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/growth_evidence.hpp"
#include "orchestrator/analysis/trend.hpp"
#include "orchestrator/analysis/units.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace plateau {

namespace {

constexpr std::int64_t fewest_windows = 6;
constexpr std::int64_t most_windows_needed = 10'000;
constexpr std::int64_t least_maxima = 3; // in the last half of an allocator's series

// The rules for noisy series, calibrated on the generator of tests/unit/analysis_traces.hpp: see docs/measurement.md.
constexpr double alpha = 0.002;        // level of the trend's test, over all noisy series of a case
constexpr double least_prominence = 5; // the rise over the soak, in scatters around the line
constexpr double least_half = 0.75;    // the last half's slope, in thresholds per soak
constexpr double least_creep = 5;      // a smaller rise that is no plateau: in the last half, in scatters or pages

constexpr double device_granule = 2 << 20; // in which a GPU gives memory

struct series_info {
  std::string_view name;
  bool exact; // an allocator's counter: without noise
  double (*bytes)(memory_point const&);
};
constexpr std::array all_series{
    series_info{"allocated_bytes", true,
                [](memory_point const& p) { return static_cast<double>(p.allocator.allocated_bytes); }},
    series_info{"reserved_bytes", true,
                [](memory_point const& p) { return static_cast<double>(p.allocator.reserved_bytes); }},
    series_info{"outside_bytes", false, [](memory_point const& p) { return static_cast<double>(p.outside_bytes); }},
    series_info{"host_resident_bytes", false,
                [](memory_point const& p) { return static_cast<double>(p.host_resident_bytes); }}};

struct examined {
  series_info const* info;
  memory_curve curve;
  series_growth growth;
  std::optional<growth_evidence> noisy; // not settled yet
};

std::vector<memory_point> const& points_of(case_result const& result) {
  return result.measured ? result.measured->soak : result.soak_so_far;
}

memory_curve curve_of(std::vector<memory_point> const& points, series_info const& series) {
  memory_curve c;
  for (std::size_t i = 0; i < points.size(); ++i) {
    auto const requests = static_cast<double>(points[i].requests);
    if (!c.x.empty() && requests <= c.x.back()) continue;
    c.x.push_back(requests);
    c.y.push_back(series.bytes(points[i]));
    c.seconds.push_back(static_cast<double>(points[i].elapsed_ns) * 1e-9);
    c.window.push_back(static_cast<std::int64_t>(i));
  }
  return c;
}

std::string time_text(double seconds) {
  if (seconds < 120) return number_text(seconds) + " s";
  if (seconds < 7200) return number_text(seconds / 60) + " min";
  if (seconds < 2 * 86400) return number_text(seconds / 3600) + " h";
  return number_text(seconds / 86400) + " days";
}

std::string window_text(std::int64_t window) { return "window " + std::to_string(window); }

double rate_of(memory_curve const& c, std::size_t first, std::size_t last) {
  return (c.y[last] - c.y[first]) / (c.x[last] - c.x[first]);
}

void too_few_windows(series_growth& growth, std::int64_t windows) {
  growth.outcome = growth_outcome::inconclusive;
  growth.windows_needed = 2 * fewest_windows;
  growth.reason = "the curve ends after " + window_text(windows) + "; to judge growth takes at least " +
                  std::to_string(fewest_windows) + " windows";
}

// The first window from which on it never leaves the last half's range by more than the threshold.
std::int64_t level_from(memory_curve const& c, double threshold) {
  auto const half = static_cast<std::ptrdiff_t>((c.size() - 1) / 2);
  auto const [low, high] = std::minmax_element(c.y.begin() + half, c.y.end());
  auto from = static_cast<std::size_t>(half);
  while (from > 0 && c.y[from - 1] >= *low - threshold && c.y[from - 1] <= *high + threshold) --from;
  return c.window[from];
}

// The window of the first new maximum from which on no pause is longer than twice the longest between those of the
// last half.
std::int64_t onset_of(memory_curve const& c, std::size_t half) {
  std::vector<std::size_t> rises; // the last first
  auto highest = c.y[0];
  for (std::size_t i = 1; i < c.size(); ++i) {
    if (c.y[i] > highest) rises.push_back(i);
    highest = std::max(highest, c.y[i]);
  }
  std::ranges::reverse(rises);
  std::size_t pause = 1;
  for (std::size_t k = 1; k < rises.size() && rises[k] > half; ++k) pause = std::max(pause, rises[k - 1] - rises[k]);
  std::size_t first = 0;
  while (first + 1 < rises.size() && rises[first] - rises[first + 1] <= 2 * pause) ++first;
  return c.window[rises[first]];
}

// The smallest change that a noisy series shows.
double grain_of(case_result const& result, series_info const& series) {
  return series.name == "outside_bytes" && result.device && result.device->kind != "cpu" ? device_granule : page_bytes;
}

std::string not_excluded_text(double bytes_per_request) {
  return "; up to " + bytes_text(1000 * bytes_per_request) + " per 1000 requests is not excluded";
}

// Settles a series that does not change in its last half; false when it does.
bool judge_level(series_growth& growth, memory_curve const& c, series_info const& series, double grain) {
  auto const half = c.y.begin() + static_cast<std::ptrdiff_t>((c.size() - 1) / 2);
  if (std::any_of(half, c.y.end(), [&](double y) { return y != c.y.back(); })) return false;
  auto from = c.size() - 1;
  while (from > 0 && c.y[from - 1] == c.y.back()) --from;
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = c.window[from];
  growth.reason = "level from " + window_text(c.window[from]) + " on, at " + bytes_text(c.y.back()) +
                  (series.exact ? "" : not_excluded_text(grain / (c.x.back() - c.x[from])));
  return true;
}

// Settles a series that takes no value in its last half that it had not taken before: a saw-tooth, not a leak.
bool judge_repeating(series_growth& growth, memory_curve const& c, std::size_t half) {
  std::set<double> const before(c.y.begin(), c.y.begin() + static_cast<std::ptrdiff_t>(half) + 1);
  auto const last_half = std::span(c.y).subspan(half + 1);
  if (!std::ranges::all_of(last_half, [&](double y) { return before.contains(y); })) return false;
  auto const [low, high] = std::ranges::minmax(last_half);
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = level_from(c, 0);
  growth.reason =
      "moves between " + bytes_text(low) + " and " + bytes_text(high) + ", and had each of its values before";
  return true;
}

void settle_exact_growing(series_growth& growth, memory_curve const& c, exact_moves const& m, std::string const& why) {
  growth.outcome = growth_outcome::growing;
  growth.onset = onset_of(c, m.half);
  growth.reason = "grows by " + bytes_text(growth.bytes_per_1000_requests) + " per 1000 requests from " +
                  window_text(*growth.onset) + " on: " + std::to_string(m.maxima) + " new maxima in the last half" +
                  why;
}

void settle_levelling_off(series_growth& growth, memory_curve const& c, exact_moves const& m) {
  growth.outcome = growth_outcome::inconclusive;
  growth.windows_needed = 2 * c.windows();
  growth.reason = "rose by " + bytes_text(c.y.back() - c.y[m.half]) +
                  " in the last half, but is levelling off: " + bytes_text(m.third_rose) + " in the third quarter, " +
                  bytes_text(m.fourth_rose) + " in the last";
}

bool levelling_off(exact_moves const& m, memory_curve const& c) {
  auto const third = c.x[m.quarter] - c.x[m.half], fourth = c.x.back() - c.x[m.quarter];
  return m.fourth_rose / fourth < m.third_rose / third / 2;
}

// Settles an allocator series that does not fall in its last half.
void judge_rising(series_growth& growth, memory_curve const& c, exact_moves const& m) {
  auto const rose = bytes_text(c.y.back() - c.y[m.half]);
  growth.outcome = growth_outcome::inconclusive;
  if (m.maxima >= least_maxima && !levelling_off(m, c)) {
    settle_exact_growing(growth, c, m, "");
  } else if (m.maxima >= least_maxima) {
    settle_levelling_off(growth, c, m);
  } else if (m.maxima > 0) {
    growth.windows_needed = 4 * c.windows() / m.maxima; // at this rate four maxima in its last half
    growth.reason = "rose by " + rose + " in " + std::to_string(m.rises) +
                    " of the last half's windows: too seldom to tell growth from single steps";
  } else {
    growth.windows_needed = 2 * c.windows();
    growth.reason = "rose by " + rose + " in the last half, but stays below its earlier maximum";
  }
}

// Settles an allocator series that also falls in its last half: it grows only if what it falls to rises too.
void judge_moving(series_growth& growth, memory_curve const& c, exact_moves const& m) {
  if (judge_repeating(growth, c, m.half)) return;
  auto const [low, high] = std::ranges::minmax(std::span(c.y).subspan(m.half));
  auto const between = "moves between " + bytes_text(low) + " and " + bytes_text(high);
  auto const minima = std::max(m.minima, m.sure_minima);
  auto const one_fall = m.troughs < 2 && c.y.back() != c.y[m.half]; // from which no lower envelope can be seen
  if (m.maxima >= least_maxima && m.sure_minima >= least_maxima && !levelling_off(m, c)) {
    settle_exact_growing(growth, c, m, ", and it falls less and less low");
  } else if ((m.late_maxima > 0 && (minima > 0 || one_fall)) || std::max(m.late_maxima, minima) >= least_maxima) {
    growth.outcome = growth_outcome::inconclusive;
    growth.windows_needed = 2 * c.windows();
    growth.reason = between + ": in the last half its highest values rose " + std::to_string(m.late_maxima) +
                    " times and its lowest " + std::to_string(minima) + " times, too little to tell growth from chance";
  } else {
    growth.outcome = growth_outcome::plateau;
    growth.plateau_from = level_from(c, 0);
    growth.reason = between + ", and its " + (m.late_maxima > 0 ? "lowest" : "highest") + " values do not rise";
  }
}

void judge_exact(series_growth& growth, memory_curve const& c) {
  auto const m = moves_of(c);
  growth.bytes_per_1000_requests = 1000 * rate_of(c, m.half, c.size() - 1);
  if (m.falls > 0)
    judge_moving(growth, c, m);
  else
    judge_rising(growth, c, m);
}

std::optional<std::int64_t> not_too_many(double windows) {
  if (!(windows <= most_windows_needed)) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(windows));
}

// Windows after which the slope seen, were it the true one, would stand out from noise or be shown to be negligible.
// The interval of the rise over a soak narrows with the square root of its windows, and a true rise grows with them.
std::optional<std::int64_t> windows_to_tell(growth_evidence const& e) {
  auto const width = e.high_rise - e.low_rise;
  auto const times =
      e.half_rise >= e.threshold ? std::pow(width / e.half_rise, 2.0 / 3) : std::pow(width / e.threshold, 2);
  return not_too_many(static_cast<double>(e.trend.windows()) * std::max(2.0, times));
}

// Windows after which the slope seen makes more than the threshold.
std::optional<std::int64_t> windows_to_reach(growth_evidence const& e) {
  return not_too_many(static_cast<double>(e.trend.windows()) * std::max(2.0, 1.5 * e.threshold / e.half_rise));
}

std::string rise_text(growth_evidence const& e) {
  return bytes_text(e.half_rise) + " over a soak (95%: " + bytes_text(e.low_rise) + " to " + bytes_text(e.high_rise) +
         ")";
}

std::string one_off_text(growth_evidence const& e) {
  if (!e.one_off) return "";
  return "; a single step of " + bytes_text(e.one_off->bytes) + " in " + window_text(e.one_off->window) +
         " is not counted";
}

void settle_growing(series_growth& growth, growth_evidence const& e) {
  growth.outcome = growth_outcome::growing;
  growth.onset = bend_of(e.trend);
  growth.reason = "grows by " + bytes_text(growth.bytes_per_1000_requests) +
                  " per 1000 requests (95%: " + bytes_text(*growth.low) + " to " + bytes_text(*growth.high) +
                  ") from " + window_text(*growth.onset) + " on" + one_off_text(e);
}

void settle_level(series_growth& growth, growth_evidence const& e, double slack, double grain, std::string const& why) {
  auto const one_grain = grain / (e.trend.x.back() - e.trend.x[(e.trend.size() - 1) / 2]);
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = std::max(level_from(e.trend, slack), e.one_off ? e.one_off->window : 0);
  growth.reason = "level from " + window_text(*growth.plateau_from) + " on: " + why +
                  not_excluded_text(std::max(*growth.high / 1000, one_grain)) + one_off_text(e);
}

void settle_inconclusive(series_growth& growth, std::optional<std::int64_t> needed, std::string const& why) {
  growth.outcome = growth_outcome::inconclusive;
  growth.windows_needed = needed;
  growth.reason = why;
}

// Why a rise that is significant and prominent is not called growth; empty when it is.
std::string why_not_growth(growth_evidence const& e) {
  if (e.levelling_off) return "rises, but is levelling off";
  if (e.is_a_step) return "rises, but a single step explains it better than growth does";
  if (!e.new_height) return "rises, but was as high before: it may fall again";
  return "";
}

// Why a series is neither growing nor level.
std::string why_unknown(growth_evidence const& e) {
  if (e.low_rise <= e.threshold) return "cannot be told from a rise of less than " + bytes_text(e.threshold);
  if (!e.new_height) return "rises, but was as high before: it may fall again";
  return "rises, but for too short a time to tell growth from a step";
}

std::string why_creeping(growth_evidence const& e) {
  if (e.half_rise >= e.threshold) return why_unknown(e);
  return "rises without a pause, but so far by less than " + bytes_text(e.threshold);
}

// Settles a noisy series. p: its trend's, after Holm's correction.
void settle(examined& x, double p, double grain) {
  auto& growth = x.growth;
  auto const& e = *x.noisy;
  auto const soak = x.curve.soak();
  growth.bytes_per_1000_requests = 1000 * e.half_rise / soak;
  growth.low = 1000 * e.low_rise / soak;
  growth.high = 1000 * e.high_rise / soak;
  auto const rises = p <= alpha && e.prominence >= least_prominence && e.rise >= e.threshold &&
                     e.half_rise >= least_half * e.threshold;
  auto const creeps = p <= alpha && e.half_prominence >= least_creep && !e.levelling_off;
  auto const within = e.half_range <= e.threshold / 2;
  auto const narrow = e.high_rise < e.threshold && e.high_rise - e.low_rise < 2 * e.threshold;
  auto const details = ": the last half's slope makes " + rise_text(e) + one_off_text(e);
  auto const why_not = why_not_growth(e);
  if (rises && why_not.empty())
    settle_growing(growth, e);
  else if (rises)
    settle_inconclusive(growth, 2 * e.trend.windows(), why_not + details);
  else if (creeps)
    settle_inconclusive(growth, windows_to_reach(e), why_creeping(e) + details);
  else if (!within && !narrow)
    settle_inconclusive(growth, windows_to_tell(e), why_unknown(e) + details);
  else if (e.late_rise > e.threshold)
    settle_inconclusive(growth, 2 * e.trend.windows(),
                        "rose by " + bytes_text(e.late_rise) +
                            " at the very end, where growth looks like a single step" + one_off_text(e));
  else if (within)
    settle_level(growth, e, e.threshold / 2, grain, "the last half stays within " + bytes_text(e.half_range));
  else
    settle_level(growth, e, e.threshold, grain,
                 "the last half's slope makes " + rise_text(e) + ", less than " + bytes_text(e.threshold));
}

growth_outcome worse(growth_outcome a, growth_outcome b) { return std::max(a, b); }

// A rank's series, each settled but for the noisy ones.
struct rank_examined {
  case_result const* result;
  std::vector<examined> series;
};

examined examine_series(case_result const& result, series_info const& series) {
  examined x{&series, curve_of(points_of(result), series), {}, {}};
  x.growth.series = series.name;
  if (std::ssize(x.curve.x) <= fewest_windows)
    too_few_windows(x.growth, x.curve.windows());
  else if (judge_level(x.growth, x.curve, series, grain_of(result, series)))
    return x;
  else if (series.exact)
    judge_exact(x.growth, x.curve);
  else
    x.noisy = weigh(x.curve);
  return x;
}

rank_examined examine_rank(case_result const& result) {
  rank_examined rank{&result, {}};
  auto const counted = !result.measured || !result.measured->counters_unavailable;
  for (auto const& series : all_series)
    if (counted || !series.exact) rank.series.push_back(examine_series(result, series));
  return rank;
}

void settle_noisy(std::vector<rank_examined>& ranks) {
  std::vector<double> p;
  for (auto const& rank : ranks)
    for (auto const& series : rank.series)
      if (series.noisy) p.push_back(series.noisy->p);
  auto const adjusted = holm(p);
  auto next = adjusted.begin();
  for (auto& rank : ranks)
    for (auto& series : rank.series)
      if (series.noisy) settle(series, *next++, grain_of(*rank.result, *series.info));
}

// Of the memory that the series is in, what the rank has, and how much more it takes.
struct filling {
  double used = 0, bytes_per_second = 0;
};
filling filling_of(rank_examined const& rank, std::string_view name) {
  auto const x = std::ranges::find(rank.series, name, [](examined const& e) { return e.info->name; });
  if (x == rank.series.end()) return {};
  auto const& c = x->curve;
  auto const& last = points_of(*rank.result).back();
  filling f{c.y.back(), 0};
  if (name == "outside_bytes") f.used += static_cast<double>(last.allocator.reserved_bytes);
  if (x->info->exact) f.used += static_cast<double>(last.outside_bytes);
  auto const half = (c.size() - 1) / 2;
  auto const seconds = c.seconds.back() - c.seconds[half];
  if (x->growth.outcome == growth_outcome::growing && seconds > 0)
    f.bytes_per_second = x->growth.bytes_per_1000_requests / 1000 * (c.x.back() - c.x[half]) / seconds;
  return f;
}

bool share_device(rank_info const& a, rank_info const& b) {
  return ran_together(a, b) && a.host_id == b.host_id && a.device && b.device &&
         a.device->uuid == b.device->uuid; // a CPU has no uuid
}

// Until the memory that the series is in has none left.
std::optional<double> seconds_to_full(std::vector<rank_examined> const& all, rank_examined const& rank,
                                      std::string_view series, std::span<rank_info const> ranks) {
  auto const& device = rank.result->device;
  auto const at = static_cast<std::size_t>(rank.result->rank);
  if (!device || device->memory_bytes == 0 || at >= ranks.size()) return std::nullopt;
  if (device->pretended.value_or(false)) return std::nullopt; // its times mean nothing
  auto const on_cpu = device->kind == "cpu";
  if (!on_cpu && series == "host_resident_bytes") return std::nullopt; // the machine's memory is not known
  auto const sharers = std::ranges::count_if(ranks, [&](auto const& other) { return share_device(ranks[at], other); });
  if (!on_cpu && sharers > 1) return std::nullopt; // what each of them sees outside is the others'
  filling sum;
  for (auto const& other : all) {
    if (!share_device(ranks[at], ranks[static_cast<std::size_t>(other.result->rank)])) continue;
    auto const f = filling_of(other, series);
    sum.used += f.used;
    sum.bytes_per_second += f.bytes_per_second;
  }
  if (sum.bytes_per_second <= 0) return std::nullopt;
  return std::max(static_cast<double>(device->memory_bytes) - sum.used, 0.0) / sum.bytes_per_second;
}

void tell_when_full(std::vector<rank_examined>& all, std::span<rank_info const> ranks) {
  for (auto& rank : all)
    for (auto& series : rank.series) {
      auto& growth = series.growth;
      if (growth.outcome != growth_outcome::growing) continue;
      growth.seconds_to_full = seconds_to_full(all, rank, series.info->name, ranks);
      if (growth.seconds_to_full) growth.reason += "; full in " + time_text(*growth.seconds_to_full) + " at this rate";
    }
}

} // namespace

std::vector<rank_growth> judge_growth(case_record const& record, std::span<rank_info const> ranks) {
  std::vector<rank_examined> all;
  for (auto const& result : record.by_rank)
    if (result && !points_of(*result).empty()) all.push_back(examine_rank(*result));
  settle_noisy(all);
  tell_when_full(all, ranks);
  std::vector<rank_growth> judged;
  for (auto& rank : all) {
    auto& to = judged.emplace_back(rank_growth{rank.result->rank, growth_outcome::plateau, {}});
    for (auto& series : rank.series) {
      to.outcome = worse(to.outcome, series.growth.outcome);
      to.series.push_back(std::move(series.growth));
    }
  }
  return judged;
}

std::optional<growth_outcome> outcome_of(std::span<rank_growth const> ranks) {
  std::optional<growth_outcome> outcome;
  for (auto const& rank : ranks) outcome = worse(outcome.value_or(growth_outcome::plateau), rank.outcome);
  return outcome;
}

} // namespace plateau
