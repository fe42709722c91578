// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth.hpp"

#include "orchestrator/analysis/trend.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

namespace plateau {

namespace {

constexpr std::int64_t fewest_windows = 6;
constexpr std::int64_t most_windows_needed = 10'000;
constexpr std::size_t most_points = 64; // of a noisy series; longer ones are thinned
constexpr double z_of_95 = 1.96;

// The rules for noisy series, calibrated on the generator of tests/unit/analysis_traces.hpp: see docs/measurement.md.
constexpr double alpha = 0.002;        // level of the trend's test, over all noisy series of a case
constexpr double half_alpha = 0.08;    // level of the test of the last half's own trend
constexpr double least_prominence = 5; // the rise over the soak, in scatters around the line
constexpr double least_half = 0.75;    // the last half's slope, in thresholds per soak
constexpr double step_t = 4.5;         // the t statistic from which a step is taken out
// It levels off: the last half's slope is less than 0.4 of the first's by half a standard deviation, or the last
// quarter's less than half of the third's by two and a half.
constexpr double half_share = 0.4, half_distance = -0.5, quarter_share = 0.5, quarter_distance = -2.5;
// The last quarter rises steadily: its slope is beyond doubt, and hardly less than the third's.
constexpr double steady_distance = 4, steady_share = 0.8;

// One series at the quiet points. x: requests, ascending without repetition; y: bytes.
struct curve {
  std::vector<double> x, y, seconds;
  std::vector<std::int64_t> window;

  std::size_t size() const { return x.size(); }
  std::int64_t windows() const { return window.back(); }
  double soak() const { return x.back() - x.front(); }
};

// A part of a curve: points from first up to but without last.
struct part {
  std::span<double const> x, y;
};
part part_of(curve const& c, std::size_t first, std::size_t last) {
  return {std::span(c.x).subspan(first, last - first), std::span(c.y).subspan(first, last - first)};
}

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

// A one-off: so many bytes more from this window on.
struct step {
  std::int64_t window;
  double bytes;
};

// What the noisy rules look at.
struct evidence {
  curve trend; // with the step taken out
  std::optional<step> one_off;
  double threshold = 0; // bytes over the soak
  double p = 1;         // of the trend, before Holm's correction
  double half_p = 1;
  double rise = 0;                                   // Theil and Sen's, over the soak, bytes
  double prominence = 0;                             // the same in scatters around the line
  double half_rise = 0, low_rise = 0, high_rise = 0; // what the last half's slope makes of a soak, with its interval
  double range = 0;                                  // of the last half
  bool levelling_off = false, is_a_step = false;
};

struct examined {
  series_growth growth;
  std::optional<evidence> noisy; // not settled yet
};

std::vector<memory_point> const& points_of(case_result const& result) {
  return result.measured ? result.measured->soak : result.soak_so_far;
}

curve curve_of(std::vector<memory_point> const& points, series_info const& series) {
  curve c;
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

// Three digits, more before the point.
std::string number_text(double x) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), std::abs(x) >= 100 ? "%.0f" : "%.3g", x + 0.0); // + 0: no negative zero
  return text.data();
}

// "1.5 MiB", "-3 KiB"
std::string size_text(double bytes) {
  constexpr std::array units{" B", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return number_text(bytes) + units[unit];
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

double rate_of(curve const& c, std::size_t first, std::size_t last) {
  return (c.y[last] - c.y[first]) / (c.x[last] - c.x[first]);
}

// Until the memory that the series is in has none left.
std::optional<double> seconds_to_full(case_result const& result, series_info const& series, curve const& c,
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
std::int64_t level_from(curve const& c, double threshold) {
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

exact_moves moves_of(curve const& c) {
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
std::int64_t onset_of(curve const& c, std::size_t half) {
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
bool judge_level(series_growth& growth, curve const& c) {
  auto const half = c.y.begin() + static_cast<std::ptrdiff_t>((c.size() - 1) / 2);
  if (std::any_of(half, c.y.end(), [&](double y) { return y != c.y.back(); })) return false;
  auto from = c.size() - 1;
  while (from > 0 && c.y[from - 1] == c.y.back()) --from;
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = c.window[from];
  growth.reason = "level from " + window_text(c.window[from]) + " on, at " + size_text(c.y.back());
  return true;
}

// Settles a series that takes no value in its last half that it had not taken before: a saw-tooth, not a leak.
bool judge_repeating(series_growth& growth, curve const& c, std::size_t half) {
  std::set<double> const before(c.y.begin(), c.y.begin() + static_cast<std::ptrdiff_t>(half) + 1);
  auto const last_half = std::span(c.y).subspan(half + 1);
  if (!std::ranges::all_of(last_half, [&](double y) { return before.contains(y); })) return false;
  auto const [low, high] = std::ranges::minmax(last_half);
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = level_from(c, 0);
  growth.reason = "moves between " + size_text(low) + " and " + size_text(high) + ", and had each of its values before";
  return true;
}

// Settles an allocator series; nothing is settled, and false given, when it must be judged as a noisy one.
bool judge_exact(series_growth& growth, curve const& c, case_result const& result, series_info const& series) {
  auto const m = moves_of(c);
  auto const last = c.size() - 1;
  auto const rate = rate_of(c, m.half, last);
  growth.bytes_per_1000_requests = 1000 * rate;
  if (m.falls > 0) return judge_repeating(growth, c, m.half);
  auto const rose = size_text(c.y[last] - c.y[m.half]);
  auto const third = rate_of(c, m.half, m.quarter), fourth = rate_of(c, m.quarter, last);
  if (m.maxima >= 3 && fourth >= third / 2) {
    growth.outcome = growth_outcome::growing;
    growth.onset = onset_of(c, m.half);
    growth.seconds_to_full = seconds_to_full(result, series, c, rate);
    growth.reason = "grows by " + size_text(1000 * rate) + " per 1000 requests from " + window_text(*growth.onset) +
                    " on: " + std::to_string(m.maxima) + " new maxima in the last half" + full_text(growth);
    return true;
  }
  growth.outcome = growth_outcome::inconclusive;
  if (m.maxima >= 3) {
    growth.windows_needed = 2 * c.windows();
    growth.reason = "rose by " + rose +
                    " in the last half, but is levelling off: " + size_text(c.y[m.quarter] - c.y[m.half]) +
                    " in the third quarter, " + size_text(c.y[last] - c.y[m.quarter]) + " in the last";
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

// Medians of so many neighbours that most_points are not exceeded. A shorter curve as it is.
curve thinned(curve const& c) {
  auto const group = (c.size() + most_points - 1) / most_points;
  if (group == 1) return c;
  curve out;
  for (std::size_t first = 0; first < c.size(); first += group) {
    auto const last = std::min(first + group, c.size());
    auto const p = part_of(c, first, last);
    out.x.push_back(median_of(p.x));
    out.y.push_back(median_of(p.y));
    out.seconds.push_back(median_of(std::span(c.seconds).subspan(first, last - first)));
    out.window.push_back(c.window[last - 1]);
  }
  return out;
}

// Sums of squares and products around the means: what least squares need.
struct moments {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
};
moments moments_of(part p) {
  auto const n = static_cast<double>(p.x.size());
  moments m;
  m.mean_x = std::accumulate(p.x.begin(), p.x.end(), 0.0) / n;
  m.mean_y = std::accumulate(p.y.begin(), p.y.end(), 0.0) / n;
  for (std::size_t i = 0; i < p.x.size(); ++i) {
    auto const dx = p.x[i] - m.mean_x, dy = p.y[i] - m.mean_y;
    m.xx += dx * dx;
    m.xy += dx * dy;
    m.yy += dy * dy;
  }
  return m;
}

// Takes the largest step up out of the curve if a line with a step fits it far better than a line alone: least squares,
// at the place where the step's t statistic is greatest, and only where one window made at least half of it: not out
// of a rise that begins late.
std::optional<step> take_step_out(curve& c) {
  auto const n = c.size();
  auto const m = moments_of(part_of(c, 0, n));
  auto const line_rest = m.yy - m.xy * m.xy / m.xx;
  double best_t = step_t, size = 0, above_x = 0, above_y = 0; // sums of what lies above the means, from k on
  std::size_t at = n;
  for (auto k = n - 1; k > 0; --k) {
    above_x += c.x[k] - m.mean_x;
    above_y += c.y[k] - m.mean_y;
    auto const share = static_cast<double>(n - k) / static_cast<double>(n);
    auto const weight =
        static_cast<double>(n - k) * (1 - share) - above_x * above_x / m.xx; // of the step, less the line
    if (weight < 1e-9) continue;
    auto const up = (above_y - above_x * m.xy / m.xx) / weight;
    auto const rest = std::max(line_rest - up * up * weight, 1e-12 * line_rest);
    auto const t = up * std::sqrt(weight * static_cast<double>(n - 3) / rest);
    if (line_rest <= 1e-12 * m.yy || t <= best_t || c.y[k] - c.y[k - 1] < up / 2) continue;
    best_t = t;
    size = up;
    at = k;
  }
  if (at == n) return std::nullopt;
  for (auto i = at; i < n; ++i) c.y[i] -= size;
  return step{c.window[at], size};
}

// Two levels fit the curve better than a line does.
bool step_fits_better(curve const& c) {
  auto const m = moments_of(part_of(c, 0, c.size()));
  double below = 0, explained = 0;
  for (std::size_t k = 1; k < c.size(); ++k) {
    below += c.y[k - 1] - m.mean_y;
    auto const before = static_cast<double>(k), after = static_cast<double>(c.size() - k);
    if (below < 0) explained = std::max(explained, below * below * (1 / before + 1 / after));
  }
  return explained > m.xy * m.xy / m.xx;
}

struct slope_with_error {
  double slope = 0, error = 0; // the standard deviation
};
slope_with_error slope_of(part p, double variance_factor) {
  auto const s = *theil_sen(p.x, p.y);
  return {s.slope, s.low ? (*s.high - *s.low) / (2 * z_of_95) * std::sqrt(variance_factor) : 0};
}

// How many standard deviations slope b lies above `share` of slope a.
double distance(slope_with_error b, slope_with_error a, double share) {
  auto const difference = b.slope - share * a.slope;
  auto const error = std::hypot(b.error, share * a.error);
  return difference == 0 ? 0 : difference / std::max(error, 1e-12 * std::abs(difference));
}

// Mean absolute deviation from Theil and Sen's line, as a standard deviation of normal noise.
double scatter_of(part p) {
  auto const slope = theil_sen(p.x, p.y)->slope;
  std::vector<double> rest;
  for (std::size_t i = 0; i < p.x.size(); ++i) rest.push_back(p.y[i] - slope * p.x[i]);
  auto const middle = median_of(rest);
  double sum = 0;
  for (auto const r : rest) sum += std::abs(r - middle);
  return 1.2533 * sum / static_cast<double>(rest.size());
}

evidence examine(curve const& whole) {
  evidence e;
  e.trend = thinned(whole);
  e.threshold = practical_threshold(median_of(e.trend.y));
  e.one_off = take_step_out(e.trend);
  auto const& c = e.trend;
  auto const n = c.size(), quarter = (n - 1) / 4, half = (n - 1) / 2, last_quarter = (n - 1) * 3 / 4;
  auto const soak = c.soak();
  auto const tail = part_of(c, quarter, n), last_half = part_of(c, half, n);
  auto const seen = std::max(1.0, hamed_rao_factor(tail.y)), possible = std::max(seen, autoregression_factor(tail.y));
  e.p = chance_of_rise(mann_kendall(tail.y, seen).z, tail.y.size());
  e.half_p = chance_of_rise(mann_kendall(last_half.y, seen).z, last_half.y.size());
  e.rise = theil_sen(c.x, c.y)->slope * soak;
  auto const scatter = scatter_of(tail);
  e.prominence = scatter > 0 ? e.rise / scatter : e.rise > 0 ? INFINITY : 0;
  auto const b1 = slope_of(part_of(c, 0, half + 1), seen), b2 = slope_of(last_half, seen);
  auto const b3 = slope_of(part_of(c, half, last_quarter + 1), seen), b4 = slope_of(part_of(c, last_quarter, n), seen);
  auto const steady = b4.slope > steady_distance * b4.error && b4.slope >= steady_share * b3.slope;
  e.levelling_off =
      (distance(b2, b1, half_share) < half_distance && !steady) || distance(b4, b3, quarter_share) < quarter_distance;
  e.is_a_step = step_fits_better(c) && !steady;
  auto const [low, high] = std::ranges::minmax(last_half.y);
  e.range = high - low;
  e.half_rise = b2.slope * soak;
  auto const reach = z_of_95 * slope_of(last_half, possible).error * soak;
  e.low_rise = e.half_rise - reach;
  e.high_rise = e.half_rise + reach;
  return e;
}

// The window in which a rise began: least squares of a level followed by a line.
std::int64_t bend_of(curve const& c) {
  std::size_t best = 0;
  double explained = 0;
  std::vector<double> ramp(c.size());
  for (std::size_t k = 0; k + 2 < c.size(); ++k) {
    for (std::size_t i = 0; i < c.size(); ++i) ramp[i] = std::max(0.0, c.x[i] - c.x[k]);
    auto const m = moments_of({ramp, c.y});
    if (m.xy * m.xy / m.xx <= explained) continue;
    explained = m.xy * m.xy / m.xx;
    best = k;
  }
  return c.window[best + 1];
}

// Windows after which the slope seen, were it the true one, would stand out from noise or be shown to be negligible.
// The interval of the rise over a soak narrows with the square root of its windows, and a true rise grows with them.
std::optional<std::int64_t> windows_to_tell(evidence const& e) {
  auto const width = e.high_rise - e.low_rise;
  auto const times =
      e.half_rise >= e.threshold ? std::pow(width / e.half_rise, 2.0 / 3) : std::pow(width / e.threshold, 2);
  auto const needed = static_cast<double>(e.trend.windows()) * std::max(2.0, times);
  if (needed > most_windows_needed) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(needed));
}

std::string rise_text(evidence const& e) {
  return size_text(e.half_rise) + " over a soak (95%: " + size_text(e.low_rise) + " to " + size_text(e.high_rise) + ")";
}

std::string one_off_text(evidence const& e) {
  if (!e.one_off) return "";
  return "; a single step of " + size_text(e.one_off->bytes) + " in " + window_text(e.one_off->window) +
         " is not counted";
}

void settle_growing(series_growth& growth, evidence const& e, std::optional<double> full) {
  growth.outcome = growth_outcome::growing;
  growth.onset = bend_of(e.trend);
  growth.seconds_to_full = full;
  growth.reason = "grows by " + size_text(growth.bytes_per_1000_requests) +
                  " per 1000 requests (95%: " + size_text(*growth.low) + " to " + size_text(*growth.high) + ") from " +
                  window_text(*growth.onset) + " on" + full_text(growth) + one_off_text(e);
}

void settle_level(series_growth& growth, evidence const& e, double slack, std::string const& why) {
  growth.outcome = growth_outcome::plateau;
  growth.plateau_from = std::max(level_from(e.trend, slack), e.one_off ? e.one_off->window : 0);
  growth.reason = "level from " + window_text(*growth.plateau_from) + " on: " + why + one_off_text(e);
}

void settle_inconclusive(series_growth& growth, evidence const& e, bool rises) {
  growth.outcome = growth_outcome::inconclusive;
  growth.windows_needed = rises ? 2 * e.trend.windows() : windows_to_tell(e);
  growth.reason = (!rises            ? "cannot be told from a rise of less than " + size_text(e.threshold)
                   : e.levelling_off ? "rises, but is levelling off"
                                     : std::string("rises, but a single step explains it better than growth does")) +
                  ": the last half's slope makes " + rise_text(e) + one_off_text(e);
}

// Settles a noisy series. p: its trend's, after Holm's correction.
void settle(series_growth& growth, evidence const& e, double p, curve const& c, case_result const& result,
            series_info const& series) {
  auto const per_request = 1 / c.soak();
  growth.bytes_per_1000_requests = 1000 * e.half_rise * per_request;
  growth.low = 1000 * e.low_rise * per_request;
  growth.high = 1000 * e.high_rise * per_request;
  auto const rises = p <= alpha && e.half_p <= half_alpha && e.prominence >= least_prominence &&
                     e.rise >= e.threshold && e.half_rise >= least_half * e.threshold;
  if (rises && !e.levelling_off && !e.is_a_step)
    settle_growing(growth, e, seconds_to_full(result, series, c, e.half_rise * per_request));
  else if (e.range <= e.threshold / 2)
    settle_level(growth, e, e.threshold / 2, "the last half stays within " + size_text(e.range));
  else if (e.high_rise < e.threshold && e.high_rise - e.low_rise < 2 * e.threshold)
    settle_level(growth, e, e.threshold,
                 "the last half's slope makes " + rise_text(e) + ", less than " + size_text(e.threshold));
  else
    settle_inconclusive(growth, e, rises);
}

growth_outcome worse(growth_outcome a, growth_outcome b) { return std::max(a, b); }

// A rank's series, each settled but for the noisy ones.
struct rank_examined {
  case_result const* result;
  std::array<curve, all_series.size()> curves;
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
      found.noisy = examine(c);
  }
  return rank;
}

} // namespace

double practical_threshold(double level) { return std::max(1024.0 * 1024.0, level / 1000); }

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
