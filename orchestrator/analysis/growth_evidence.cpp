// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth_evidence.hpp"

#include "orchestrator/analysis/trend.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

namespace plateau {

namespace {

constexpr std::size_t most_points = 64; // longer curves are thinned
constexpr double z_of_95 = 1.96;
constexpr double normal_per_absolute = 1.2533; // standard deviation of normal noise, in mean absolute deviations

// Calibrated, as the rules that read the evidence, on the generator of tests/unit/analysis_traces.hpp.
constexpr double step_t = 4.5; // the t statistic from which a step is taken out
// It levels off: the last half's slope is less than 0.4 of the first's by half a standard deviation, or the last
// quarter's less than half of the third's by two and a half.
constexpr double half_share = 0.4, half_distance = -0.5, quarter_share = 0.5, quarter_distance = -2.5;
// The last quarter rises steadily: its slope is beyond doubt, and hardly less than the third's.
constexpr double steady_distance = 4, steady_share = 0.8;
// How far above all before the last quarter must be: a quarter of the threshold and half of the greatest fall, less
// three standard deviations of the noise.
constexpr double height_threshold = 0.25, height_fall = 0.5, height_noise = 3;
constexpr std::size_t late_points = 3;

// A part of a curve: points from first up to but without last.
struct part {
  std::span<double const> x, y;
};
part part_of(memory_curve const& c, std::size_t first, std::size_t last) {
  return {std::span(c.x).subspan(first, last - first), std::span(c.y).subspan(first, last - first)};
}

// Medians of so many neighbours that most_points are not exceeded. A shorter curve as it is.
memory_curve thinned(memory_curve const& c) {
  auto const group = (c.size() + most_points - 1) / most_points;
  if (group == 1) return c;
  memory_curve out;
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
std::optional<memory_step> take_step_out(memory_curve& c) {
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
  return memory_step{c.window[at], size};
}

// Two levels fit the curve better than a line does.
bool step_fits_better(memory_curve const& c) {
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
  return normal_per_absolute * sum / static_cast<double>(rest.size());
}

// Running medians of three, which take single outliers away but leave falls; the ends as they are.
std::vector<double> smoothed(std::span<double const> y) {
  std::vector<double> out(y.begin(), y.end());
  for (std::size_t i = 1; i + 1 < y.size(); ++i) out[i] = median_of(y.subspan(i - 1, 3));
  return out;
}

// The greatest fall from a value to any later one.
double greatest_fall(std::span<double const> y) {
  double fall = 0, highest = y[0];
  for (auto const value : y) {
    highest = std::max(highest, value);
    fall = std::max(fall, highest - value);
  }
  return fall;
}

// Of the noise from point to point, as a standard deviation; neither a slope nor seldom falls count.
double noise_of(std::span<double const> y) {
  constexpr double normal_per_median = 1.4826; // standard deviation of normal noise, in median absolute deviations
  std::vector<double> steps;
  for (std::size_t i = 1; i < y.size(); ++i) steps.push_back(y[i] - y[i - 1]);
  auto const middle = median_of(steps);
  for (auto& step : steps) step = std::abs(step - middle);
  return normal_per_median * median_of(steps) / std::numbers::sqrt2;
}

// A leak reaches heights where the memory has never been; a saw-tooth comes back to where it fell from.
bool reaches_new_height(memory_curve const& c, double fall, double threshold) {
  auto const level = smoothed(c.y);
  auto const quarter = static_cast<std::ptrdiff_t>((c.size() - 1) * 3 / 4);
  auto const before = *std::max_element(level.begin(), level.begin() + quarter + 1);
  auto const now = *std::max_element(level.begin() + quarter + 1, level.end());
  return now - before >= height_threshold * threshold + height_fall * fall - height_noise * noise_of(c.y);
}

// Also the leak that has just begun, which robust slopes do not see.
double late_rise_of(memory_curve const& c, std::optional<memory_step> const& one_off) {
  auto y = c.y;
  if (one_off && one_off->window <= c.window[(c.size() - 1) * 3 / 4])
    for (std::size_t i = 0; i < y.size(); ++i) y[i] -= c.window[i] >= one_off->window ? one_off->bytes : 0;
  auto const late = y.size() - late_points, half = (y.size() - 1) / 2;
  return std::ranges::max(std::span(y).subspan(late)) - median_of(std::span(y).subspan(half, late - half));
}

// How the slope changes towards the end. Steadiness excuses a last half that is slower than the first: a leak may
// follow a warm-up. But not one that has not made good a fall: so rises a saw-tooth.
struct course {
  bool steady, levelling_off;
};
course course_of(memory_curve const& c, double variance_factor, double fall) {
  auto const last = c.size() - 1, half = last / 2, quarter = last * 3 / 4;
  auto const slope = [&](std::size_t from, std::size_t to) {
    return slope_of(part_of(c, from, to + 1), variance_factor);
  };
  auto const first_half = slope(0, half), last_half = slope(half, last);
  auto const third_quarter = slope(half, quarter), last_quarter = slope(quarter, last);
  auto const steady = last_half.slope * (c.x[last] - c.x[half]) >= fall &&
                      last_quarter.slope > steady_distance * last_quarter.error &&
                      last_quarter.slope >= steady_share * third_quarter.slope;
  auto const slower = distance(last_half, first_half, half_share) < half_distance;
  auto const stopping = distance(last_quarter, third_quarter, quarter_share) < quarter_distance;
  return {steady, (slower && !steady) || stopping};
}

// How often the lower envelope rises between two points, when it is at most `end` at the latter.
std::int64_t envelope_rises(memory_curve const& c, std::size_t first, std::size_t last, double end) {
  std::int64_t rises = 0;
  for (auto i = last; i > first; --i) {
    end = std::min(end, c.y[i]);
    rises += c.y[i - 1] < end;
  }
  return rises;
}

} // namespace

exact_moves moves_of(memory_curve const& c) {
  exact_moves m;
  auto const last = c.size() - 1;
  m.half = last / 2;
  m.quarter = (m.half + last) / 2;
  std::vector<double> upper(c.y), lower(c.y);
  std::partial_sum(c.y.begin(), c.y.end(), upper.begin(), [](double a, double b) { return std::max(a, b); });
  std::partial_sum(c.y.rbegin(), c.y.rend(), lower.rbegin(), [](double a, double b) { return std::min(a, b); });
  auto late = *std::max_element(c.y.begin() + static_cast<std::ptrdiff_t>(last / 4),
                                c.y.begin() + static_cast<std::ptrdiff_t>(m.half) + 1);
  auto trough = m.half;
  for (auto i = m.half + 1; i <= last; ++i) {
    m.rises += c.y[i] > c.y[i - 1];
    m.falls += c.y[i] < c.y[i - 1];
    m.maxima += c.y[i] > upper[i - 1];
    m.late_maxima += c.y[i] > late;
    late = std::max(late, c.y[i]);
    if (c.y[i] >= c.y[i - 1]) continue;
    trough = i;
    m.troughs += i == last || c.y[i + 1] >= c.y[i];
  }
  auto const fall = greatest_fall(std::span(c.y).subspan(last / 4));
  m.minima = envelope_rises(c, m.half, trough, lower[trough]);
  m.sure_minima = envelope_rises(c, m.half, last, c.y[last] - fall);
  auto const middle = [&](std::size_t i) { return (upper[i] + lower[i]) / 2; };
  m.third_rose = middle(m.quarter) - middle(m.half);
  m.fourth_rose = middle(last) - middle(m.quarter);
  return m;
}

double practical_threshold(double level) { return std::max(1024.0 * 1024.0, level / 1000); }

growth_evidence weigh(memory_curve const& curve) {
  growth_evidence e;
  e.trend = thinned(curve);
  e.threshold = practical_threshold(median_of(e.trend.y));
  e.one_off = take_step_out(e.trend);
  auto const& c = e.trend;
  auto const n = c.size();
  auto const tail = part_of(c, (n - 1) / 4, n), last_half = part_of(c, (n - 1) / 2, n);
  auto const seen = std::max(1.0, hamed_rao_factor(tail.y)), possible = std::max(seen, autoregression_factor(tail.y));
  e.p = chance_of_rise(mann_kendall(tail.y, seen).z, tail.y.size());
  e.rise = theil_sen(c.x, c.y)->slope * c.soak();
  auto const scatter = scatter_of(tail);
  e.prominence = scatter > 0 ? e.rise / scatter : e.rise > 0 ? INFINITY : 0;
  auto const half = slope_of(last_half, possible);
  e.half_rise = half.slope * c.soak();
  e.low_rise = e.half_rise - z_of_95 * half.error * c.soak();
  e.high_rise = e.half_rise + z_of_95 * half.error * c.soak();
  auto const [low, high] = std::ranges::minmax(last_half.y);
  e.half_range = high - low;
  e.half_prominence =
      half.slope * (last_half.x.back() - last_half.x.front()) / std::max(scatter_of(last_half), page_bytes);
  e.late_rise = late_rise_of(curve, e.one_off);
  auto const fall = greatest_fall(smoothed(c.y));
  e.new_height = reaches_new_height(c, fall, e.threshold);
  auto const course = course_of(c, seen, fall);
  e.levelling_off = course.levelling_off;
  e.is_a_step = step_fits_better(c) && !course.steady;
  return e;
}

std::int64_t bend_of(memory_curve const& c) {
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

} // namespace plateau
