// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/quantile.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plateau {

namespace {

constexpr double tail = 0.025; // on each side of a 95% interval
constexpr double negligible = 1e-20;

// The probabilities of a binomial variable around its mode; those left out add up to nothing.
struct binomial {
  std::int64_t first = 0; // the value that p[0] belongs to
  std::vector<double> p;
};

binomial binomial_of(std::int64_t n, double q) {
  auto const mode = std::min(n, static_cast<std::int64_t>(std::floor(static_cast<double>(n + 1) * q)));
  auto const odds = q / (1 - q);
  std::vector<double> below, above{1.0}; // relative to the mode's
  double weight = 1;
  for (auto k = mode; k > 0; --k) { // P(k - 1) / P(k)
    weight *= static_cast<double>(k) / (static_cast<double>(n - k + 1) * odds);
    if (weight < negligible) break;
    below.push_back(weight);
  }
  weight = 1;
  for (auto k = mode; k < n; ++k) { // P(k + 1) / P(k)
    weight *= static_cast<double>(n - k) * odds / static_cast<double>(k + 1);
    if (weight < negligible) break;
    above.push_back(weight);
  }
  binomial out{mode - static_cast<std::int64_t>(below.size()), {below.rbegin(), below.rend()}};
  out.p.insert(out.p.end(), above.begin(), above.end());
  double total = 0;
  for (auto const p : out.p) total += p;
  for (auto& p : out.p) p /= total;
  return out;
}

// Ranks, from 1, of the order statistics that bound the quantile; 0 and n + 1 stand for no bound.
struct rank_bounds {
  std::int64_t low, high;
};

rank_bounds bounds_of(std::int64_t n, double q) {
  auto const b = binomial_of(n, q);
  rank_bounds bounds{b.first, b.first + static_cast<std::int64_t>(b.p.size())};
  double sum = 0;
  for (auto p = b.p.begin(); p != b.p.end() && (sum += *p) <= tail; ++p) ++bounds.low; // P(B < low) <= tail
  sum = 0;
  for (auto p = b.p.rbegin(); p != b.p.rend() && (sum += *p) <= tail; ++p) --bounds.high; // P(B >= high) <= tail
  return bounds;
}

// As numpy interpolates, so that the last bit agrees too.
double interpolated(double a, double b, double t) {
  auto const difference = b - a;
  return t < 0.5 ? a + difference * t : b - difference * (1 - t);
}

} // namespace

std::int64_t samples_needed(double q) {
  return static_cast<std::int64_t>(std::ceil(std::log(tail) / std::log(std::max(q, 1 - q))));
}

std::optional<estimate> quantile(std::int64_t count, std::function<std::int64_t(std::int64_t)> const& nth, double q) {
  if (count == 0) return std::nullopt;
  auto const position = static_cast<double>(count - 1) * q;
  auto const below = static_cast<std::int64_t>(std::floor(position));
  auto const above = std::min(below + 1, count - 1);
  estimate e;
  e.value = interpolated(static_cast<double>(nth(below)), static_cast<double>(nth(above)),
                         position - static_cast<double>(below));
  auto const bounds = bounds_of(count, q);
  if (bounds.low >= 1) e.low = nth(bounds.low - 1);
  if (bounds.high <= count) e.high = nth(bounds.high - 1);
  e.samples_needed = samples_needed(q);
  e.enough = e.low && e.high;
  return e;
}

std::optional<estimate> quantile(std::span<std::int64_t const> sorted, double q) {
  auto const nth = [&](std::int64_t k) { return sorted[static_cast<std::size_t>(k)]; };
  return quantile(static_cast<std::int64_t>(sorted.size()), nth, q);
}

} // namespace plateau
