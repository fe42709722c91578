// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plateau {

/// Is there a monotonic trend, whatever its form? The test of Mann (1945) and Kendall (1975).
struct mann_kendall_test {
  std::int64_t s = 0;     ///< pairs that rise less pairs that fall
  double variance = 0;    ///< of s, were there no trend: [n(n-1)(2n+5) - sum over ties of t(t-1)(2t+5)] / 18
  double z = 0;           ///< s, brought nearer to 0 by 1, over its standard deviation; 0 when s is 0
  double p_two_sided = 1; ///< of a |z| at least this great, were there no trend
  double p_rising = 0.5;  ///< of a z at least this great
};

/// The test of values in the order of time. The variance is multiplied by `variance_factor`, greater than 0: see
/// hamed_rao_factor. As pymannkendall's original_test.
mann_kendall_test mann_kendall(std::span<double const> y, double variance_factor = 1);

/// The probability of a z at least this great among `count` different values in random order. Up to 30 values exact,
/// from the number of permutations with so many inversions, as scipy.stats.kendalltau's "exact": far out, where a
/// family of tests looks, the normal distribution gives up to a hundred times too much. Beyond 30 values normal.
double chance_of_rise(double z, std::size_t count);

/// By how much autocorrelation makes the variance of Mann and Kendall's s greater (Hamed and Rao, 1998):
///   1 + 2 / (n(n-1)(n-2)) * sum over lags k of (n-k)(n-k-1)(n-k-2) r(k)
/// r: autocorrelation of the ranks of y less its Theil-Sen line over 1, 2, ...; only lags at which it differs from 0 at
/// the two-sided level 5% count. As pymannkendall's hamed_rao_modification_test. Below 1, even below 0, for values
/// that alternate; 1 for fewer than three values, and when no rank differs.
double hamed_rao_factor(std::span<double const> y);

/// The same for autocorrelation of the form r(k) = r^k, a first-order autoregression. r is the lag-1 autocorrelation
/// of the same ranks, less its bias on a straight line's residuals: r + (1 + 4r) / n. It is never below 1, and unlike
/// hamed_rao_factor it sees an r that a short series cannot tell from 0.
double autoregression_factor(std::span<double const> y);

/// A slope in units of y per unit of x, with its 95% interval.
struct slope_estimate {
  double slope = 0;
  std::optional<double> low, high; ///< absent when ties leave no variance to take them from
};

/// The slope of Theil (1950) and Sen (1968): the median of the slopes between all pairs of points of different x, which
/// may be uneven, and the interval of Sen's equation 2.6. As scipy.stats.theilslopes. x and y are of equal length.
/// Nothing when no two points differ in x.
std::optional<slope_estimate> theil_sen(std::span<double const> x, std::span<double const> y);

/// p-values of a family of tests, each raised so that rejecting those at most alpha is wrong in any of them with a
/// probability of at most alpha (Holm, 1979). In the order given.
std::vector<double> holm(std::span<double const> p);

/// The middle value, or the mean of the middle two. At least one value.
double median_of(std::span<double const> values);

} // namespace plateau
