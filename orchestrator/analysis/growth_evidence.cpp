// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/growth_evidence.hpp"

#include "orchestrator/analysis/trend.hpp"

#include <algorithm>
#include <cmath>
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

// How the slope changes towards the end. Steadiness excuses a last half that is slower than the first: a leak may
// follow a warm-up.
struct course {
  bool steady, levelling_off;
};
course course_of(memory_curve const& c, double variance_factor) {
  auto const last = c.size() - 1, half = last / 2, quarter = last * 3 / 4;
  auto const slope = [&](std::size_t from, std::size_t to) {
    return slope_of(part_of(c, from, to + 1), variance_factor);
  };
  auto const first_half = slope(0, half), last_half = slope(half, last);
  auto const third_quarter = slope(half, quarter), last_quarter = slope(quarter, last);
  auto const steady = last_quarter.slope > steady_distance * last_quarter.error &&
                      last_quarter.slope >= steady_share * third_quarter.slope;
  auto const slower = distance(last_half, first_half, half_share) < half_distance;
  auto const stopping = distance(last_quarter, third_quarter, quarter_share) < quarter_distance;
  return {steady, (slower && !steady) || stopping};
}

} // namespace

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
  auto const course = course_of(c, seen);
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
