// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/trend.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plateau {

namespace {

constexpr double z_of_95 = 1.959963984540054; // the normal distribution's quantile 0.975
constexpr std::size_t most_exact = 30;

int sign(double x) { return (x > 0) - (x < 0); }

// The probability that a normal variable is at least z; exact in the far tail too.
double normal_above(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }

double median_of_sorted(std::span<double const> sorted) {
  auto const n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// The sum over groups of equal values of t(t-1)(2t+5), t being their number.
double ties(std::span<double const> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  double sum = 0;
  for (auto first = sorted.begin(); first != sorted.end();) {
    auto const last = std::upper_bound(first, sorted.end(), *first);
    auto const t = static_cast<double>(last - first);
    sum += t * (t - 1) * (2 * t + 5);
    first = last;
  }
  return sum;
}

// What share of all permutations of so many values has 0, 1, ... inversions: inserting the i-th value makes 0 to i - 1.
std::vector<double> inversion_shares(std::size_t count) {
  std::vector<double> shares(count * (count - 1) / 2 + 1, 0.0);
  shares[0] = 1;
  for (std::size_t i = 2; i <= count; ++i) {
    auto const before = shares;
    for (std::size_t k = 0; k <= i * (i - 1) / 2; ++k) {
      double sum = 0;
      for (std::size_t made = 0; made < i && made <= k; ++made) sum += before[k - made];
      shares[k] = sum / static_cast<double>(i);
    }
  }
  return shares;
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(std::span<double const> values) {
  std::vector<double> sorted(values.begin(), values.end()), ranks;
  std::ranges::sort(sorted);
  for (auto const value : values) {
    auto const [first, last] = std::ranges::equal_range(sorted, value);
    ranks.push_back(static_cast<double>((first - sorted.begin()) + (last - sorted.begin()) + 1) / 2);
  }
  return ranks;
}

// The autocorrelation, from lag 0, of the ranks of what y is off its Theil-Sen line. Empty when no rank differs.
std::vector<double> rank_autocorrelation(std::span<double const> y) {
  auto const n = y.size();
  if (n < 3) return {};
  std::vector<double> steps(n), rest(n);
  std::iota(steps.begin(), steps.end(), 1.0);
  auto const slope = theil_sen(steps, y)->slope;
  for (std::size_t i = 0; i < n; ++i) rest[i] = y[i] - steps[i] * slope;
  auto ranks = ranks_of(rest);
  auto const mean = static_cast<double>(n + 1) / 2;
  for (auto& rank : ranks) rank -= mean;
  std::vector<double> r(n);
  for (std::size_t lag = 0; lag < n; ++lag)
    r[lag] = std::inner_product(ranks.begin() + static_cast<std::ptrdiff_t>(lag), ranks.end(), ranks.begin(), 0.0);
  if (r[0] == 0) return {};
  for (auto const variance = r[0]; auto& x : r) x /= variance;
  return r;
}

// Hamed and Rao's factor for the autocorrelation r(k), k from 1 to n - 1.
template <class Autocorrelation>
double factor_of(std::size_t count, Autocorrelation r) {
  auto const n = static_cast<double>(count);
  double sum = 0;
  for (std::size_t lag = 1; lag < count; ++lag) {
    auto const left = n - static_cast<double>(lag);
    sum += left * (left - 1) * (left - 2) * r(lag);
  }
  return 1 + 2 / (n * (n - 1) * (n - 2)) * sum;
}

} // namespace

mann_kendall_test mann_kendall(std::span<double const> y, double variance_factor) {
  mann_kendall_test test;
  for (std::size_t i = 0; i < y.size(); ++i)
    for (auto const later : y.subspan(i + 1)) test.s += sign(later - y[i]);
  auto const n = static_cast<double>(y.size());
  test.variance = (n * (n - 1) * (2 * n + 5) - ties(y)) / 18 * variance_factor;
  if (test.s != 0) test.z = static_cast<double>(test.s - (test.s > 0 ? 1 : -1)) / std::sqrt(test.variance);
  test.p_two_sided = 2 * normal_above(std::abs(test.z));
  test.p_rising = normal_above(test.z);
  return test;
}

double chance_of_rise(double z, std::size_t count) {
  if (count < 2 || count > most_exact) return normal_above(z);
  auto const n = static_cast<double>(count), pairs = n * (n - 1) / 2;
  auto const s = z * std::sqrt(n * (n - 1) * (2 * n + 5) / 18) + (z > 0 ? 1 : z < 0 ? -1 : 0);
  auto const most = std::clamp((pairs - s) / 2, 0.0, pairs); // inversions: pairs that fall
  double sum = 0;
  auto const shares = inversion_shares(count);
  for (std::size_t k = 0; static_cast<double>(k) <= most + 1e-6; ++k) sum += shares[k];
  return std::min(sum, 1.0);
}

double hamed_rao_factor(std::span<double const> y) {
  auto const r = rank_autocorrelation(y);
  if (r.empty()) return 1;
  auto const bound = z_of_95 / std::sqrt(static_cast<double>(y.size()));
  return factor_of(r.size(), [&](std::size_t lag) { return std::abs(r[lag]) > bound ? r[lag] : 0; });
}

double autoregression_factor(std::span<double const> y) {
  auto const r = rank_autocorrelation(y);
  if (r.empty()) return 1;
  auto const first = std::clamp(r[1] + (1 + 4 * r[1]) / static_cast<double>(y.size()), 0.0, 1.0);
  return factor_of(r.size(), [&](std::size_t lag) { return std::pow(first, static_cast<double>(lag)); });
}

std::optional<slope_estimate> theil_sen(std::span<double const> x, std::span<double const> y) {
  std::vector<double> slopes;
  slopes.reserve(x.size() * (x.size() - 1) / 2);
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = i + 1; j < x.size(); ++j)
      if (x[i] != x[j]) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
  if (slopes.empty()) return std::nullopt;
  std::ranges::sort(slopes);
  slope_estimate estimate{median_of_sorted(slopes), {}, {}};
  auto const n = static_cast<double>(x.size()), pairs = static_cast<double>(slopes.size());
  auto const variance = (n * (n - 1) * (2 * n + 5) - ties(x) - ties(y)) / 18;
  if (variance < 0) return estimate;
  auto const reach = z_of_95 * std::sqrt(variance);
  auto const high = std::min(std::nearbyint((pairs + reach) / 2), pairs - 1); // halves to even, as Python rounds
  auto const low = std::max(std::nearbyint((pairs - reach) / 2) - 1, 0.0);
  estimate.low = slopes[static_cast<std::size_t>(low)];
  estimate.high = slopes[static_cast<std::size_t>(high)];
  return estimate;
}

std::vector<double> holm(std::span<double const> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size());
  double greatest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    greatest = std::max(greatest, std::min(1.0, p[order[i]] * static_cast<double>(p.size() - i)));
    adjusted[order[i]] = greatest;
  }
  return adjusted;
}

double median_of(std::span<double const> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return median_of_sorted(sorted);
}

} // namespace plateau
