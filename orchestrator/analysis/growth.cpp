// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth.hpp"

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

// The rules for noisy series, calibrated on the generator of tests/unit/analysis_traces.hpp: see docs/measurement.md.
constexpr double alpha = 0.002;        // level of the trend's test, over all noisy series of a case
constexpr double least_prominence = 5; // the rise over the soak, in scatters around the line
constexpr double least_half = 0.75;    // the last half's slope, in thresholds per soak

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

std::string full_text(series_growth const& growth) {
  return growth.seconds_to_full ? "; full in " + time_text(*growth.seconds_to_full) + " at this rate" : "";
}

double rate_of(memory_curve const& c, std::size_t first, std::size_t last) {
  return (c.y[last] - c.y[first]) / (c.x[last] - c.x[first]);
}

// Until the memory that the series is in has none left.
std::optional<double> seconds_to_full(case_result const& result, series_info const& series, memory_curve const& c,
                                      double bytes_per_request) {
  if (!result.device || result.device->memory_bytes == 0 || bytes_per_request <= 0) return std::nullopt;
  auto const on_host = series.name == "host_resident_bytes";
  if (on_host && result.device->kind != "cpu") return std::nullopt; // the machine's memory is not known
  auto const& last = points_of(result).back();
  auto used = c.y.back();
  if (series.name == "outside_bytes") used += static_cast<double>(last.allocator.reserved_bytes);
  if (series.exact) used += static_cast<double>(last.outside_bytes);
  auto const half = (c.size() - 1) / 2;
  auto const seconds = c.seconds.back() - c.seconds[half];
  if (seconds <= 0) return std::nullopt;
  auto const left = static_cast<double>(result.device->memory_bytes) - used;
  return std::max(left, 0.0) / (bytes_per_request * (c.x.back() - c.x[half]) / seconds);
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

// What an exact series does in its last half.
struct exact_moves {
  std::size_t half = 0, quarter = 0; // points at which the last half and the last quarter begin
  std::int64_t rises = 0, falls = 0, maxima = 0;
};

exact_moves moves_of(memory_curve const& c) {
  exact_moves m;
  m.half = (c.size() - 1) / 2;
  m.quarter = (m.half + c.size() - 1) / 2;
  auto highest = c.y[0];
  for (std::size_t i = 1; i < c.size(); ++i) {
    if (i > m.half) {
      m.rises += c.y[i] > c.y[i - 1];
      m.falls += c.y[i] < c.y[i - 1];
      m.maxima += c.y[i] > highest;
    }
    highest = std::max(highest, c.y[i]);
  }
  return m;
}

// The window of the first rise from which on no pause is longer than twice the longest between rises of the last half.
std::int64_t onset_of(memory_curve const& c, std::size_t half) {
  std::vector<std::size_t> rises;
  for (auto i = c.size() - 1; i > 0; --i) {
    if (c.y[i] < c.y[i - 1]) break;
    if (c.y[i] > c.y[i - 1]) rises.push_back(i);
  }
  std::size_t pause = 1;
  for (std::size_t k = 1; k < rises.size() && rises[k] > half; ++k) pause = std::max(pause, rises[k - 1] - rises[k]);
  std::size_t first = 0;
  while (first + 1 < rises.size() && rises[first] - rises[first + 1] <= 2 * pause) ++first;
  return c.window[rises[first]];
}

// Settles a series that does not change in its last half; false when it does.
bool judge_level(series_growth& growth, memory_curve const& c) {
  auto const half = c.y.begin() + static_cast<std::ptrdiff_t>((c.size() - 1) / 2);
  if (std::any_of(half, c.y.end(), [&](double y) { return y != c.y.back(); })) return false;
  auto from = c.size() - 1;
  while (from > 0 && c.y[from - 1] == c.y.back()) --from;
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = c.window[from];
  growth.reason = "level from " + window_text(c.window[from]) + " on, at " + bytes_text(c.y.back());
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

// Settles an allocator series; nothing is settled, and false given, when it must be judged as a noisy one.
bool judge_exact(series_growth& growth, memory_curve const& c, case_result const& result, series_info const& series) {
  auto const m = moves_of(c);
  auto const last = c.size() - 1;
  auto const rate = rate_of(c, m.half, last);
  growth.bytes_per_1000_requests = 1000 * rate;
  if (m.falls > 0) return judge_repeating(growth, c, m.half);
  auto const rose = bytes_text(c.y[last] - c.y[m.half]);
  auto const third = rate_of(c, m.half, m.quarter), fourth = rate_of(c, m.quarter, last);
  if (m.maxima >= 3 && fourth >= third / 2) {
    growth.outcome = growth_outcome::growing;
    growth.onset = onset_of(c, m.half);
    growth.seconds_to_full = seconds_to_full(result, series, c, rate);
    growth.reason = "grows by " + bytes_text(1000 * rate) + " per 1000 requests from " + window_text(*growth.onset) +
                    " on: " + std::to_string(m.maxima) + " new maxima in the last half" + full_text(growth);
    return true;
  }
  growth.outcome = growth_outcome::inconclusive;
  if (m.maxima >= 3) {
    growth.windows_needed = 2 * c.windows();
    growth.reason = "rose by " + rose +
                    " in the last half, but is levelling off: " + bytes_text(c.y[m.quarter] - c.y[m.half]) +
                    " in the third quarter, " + bytes_text(c.y[last] - c.y[m.quarter]) + " in the last";
  } else if (m.maxima > 0) {
    growth.windows_needed = 4 * c.windows() / m.maxima; // at this rate four maxima in its last half
    growth.reason = "rose by " + rose + " in " + std::to_string(m.rises) +
                    " of the last half's windows: too seldom to tell growth from single steps";
  } else {
    growth.windows_needed = 2 * c.windows();
    growth.reason = "rose by " + rose + " in the last half, but stays below its earlier maximum";
  }
  return true;
}

// Windows after which the slope seen, were it the true one, would stand out from noise or be shown to be negligible.
// The interval of the rise over a soak narrows with the square root of its windows, and a true rise grows with them.
std::optional<std::int64_t> windows_to_tell(growth_evidence const& e) {
  auto const width = e.high_rise - e.low_rise;
  auto const times =
      e.half_rise >= e.threshold ? std::pow(width / e.half_rise, 2.0 / 3) : std::pow(width / e.threshold, 2);
  auto const needed = static_cast<double>(e.trend.windows()) * std::max(2.0, times);
  if (needed > most_windows_needed) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(needed));
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

void settle_growing(series_growth& growth, growth_evidence const& e, std::optional<double> full) {
  growth.outcome = growth_outcome::growing;
  growth.onset = bend_of(e.trend);
  growth.seconds_to_full = full;
  growth.reason = "grows by " + bytes_text(growth.bytes_per_1000_requests) +
                  " per 1000 requests (95%: " + bytes_text(*growth.low) + " to " + bytes_text(*growth.high) +
                  ") from " + window_text(*growth.onset) + " on" + full_text(growth) + one_off_text(e);
}

void settle_level(series_growth& growth, growth_evidence const& e, double slack, std::string const& why) {
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = std::max(level_from(e.trend, slack), e.one_off ? e.one_off->window : 0);
  growth.reason = "level from " + window_text(*growth.plateau_from) + " on: " + why + one_off_text(e);
}

void settle_inconclusive(series_growth& growth, growth_evidence const& e, bool rises) {
  growth.outcome = growth_outcome::inconclusive;
  growth.windows_needed = rises ? 2 * e.trend.windows() : windows_to_tell(e);
  growth.reason = (!rises            ? "cannot be told from a rise of less than " + bytes_text(e.threshold)
                   : e.levelling_off ? "rises, but is levelling off"
                                     : std::string("rises, but a single step explains it better than growth does")) +
                  ": the last half's slope makes " + rise_text(e) + one_off_text(e);
}

// Settles a noisy series. p: its trend's, after Holm's correction.
void settle(series_growth& growth, growth_evidence const& e, double p, memory_curve const& c, case_result const& result,
            series_info const& series) {
  auto const per_request = 1 / c.soak();
  growth.bytes_per_1000_requests = 1000 * e.half_rise * per_request;
  growth.low = 1000 * e.low_rise * per_request;
  growth.high = 1000 * e.high_rise * per_request;
  auto const rises = p <= alpha && e.prominence >= least_prominence && e.rise >= e.threshold &&
                     e.half_rise >= least_half * e.threshold;
  if (rises && !e.levelling_off && !e.is_a_step)
    settle_growing(growth, e, seconds_to_full(result, series, c, e.half_rise * per_request));
  else if (e.half_range <= e.threshold / 2)
    settle_level(growth, e, e.threshold / 2, "the last half stays within " + bytes_text(e.half_range));
  else if (e.high_rise < e.threshold && e.high_rise - e.low_rise < 2 * e.threshold)
    settle_level(growth, e, e.threshold,
                 "the last half's slope makes " + rise_text(e) + ", less than " + bytes_text(e.threshold));
  else
    settle_inconclusive(growth, e, rises);
}

growth_outcome worse(growth_outcome a, growth_outcome b) { return std::max(a, b); }

// A rank's series, each settled but for the noisy ones.
struct rank_examined {
  case_result const* result;
  std::array<memory_curve, all_series.size()> curves;
  std::vector<examined> series;
};

rank_examined examine_rank(case_result const& result) {
  rank_examined rank{&result, {}, {}};
  for (std::size_t s = 0; s < all_series.size(); ++s) {
    auto const& c = rank.curves[s] = curve_of(points_of(result), all_series[s]);
    auto& found = rank.series.emplace_back();
    found.growth.series = all_series[s].name;
    if (std::ssize(c.x) <= fewest_windows)
      too_few_windows(found.growth, c.windows());
    else if (!judge_level(found.growth, c) &&
             (!all_series[s].exact || !judge_exact(found.growth, c, result, all_series[s])))
      found.noisy = weigh(c);
  }
  return rank;
}

} // namespace

std::vector<rank_growth> judge_growth(case_record const& record) {
  std::vector<rank_examined> examined_ranks;
  for (auto const& result : record.by_rank)
    if (result && !points_of(*result).empty()) examined_ranks.push_back(examine_rank(*result));
  std::vector<double> p;
  for (auto const& rank : examined_ranks)
    for (auto const& series : rank.series)
      if (series.noisy) p.push_back(series.noisy->p);
  auto const adjusted = holm(p);
  auto next = adjusted.begin();
  std::vector<rank_growth> ranks;
  for (auto& rank : examined_ranks) {
    auto& judged = ranks.emplace_back(rank_growth{rank.result->rank, growth_outcome::plateau, {}});
    for (std::size_t s = 0; s < all_series.size(); ++s) {
      auto& series = rank.series[s];
      if (series.noisy) settle(series.growth, *series.noisy, *next++, rank.curves[s], *rank.result, all_series[s]);
      judged.outcome = worse(judged.outcome, series.growth.outcome);
      judged.series.push_back(std::move(series.growth));
    }
  }
  return ranks;
}

std::optional<growth_outcome> outcome_of(std::span<rank_growth const> ranks) {
  std::optional<growth_outcome> outcome;
  for (auto const& rank : ranks) outcome = worse(outcome.value_or(growth_outcome::plateau), rank.outcome);
  return outcome;
}

} // namespace plateau
