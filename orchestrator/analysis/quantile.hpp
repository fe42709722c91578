// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace plateau {

/// A quantile with its distribution-free 95% interval, in the unit of the samples.
struct estimate {
  double value = 0;
  std::optional<std::int64_t> low, high; ///< absent: too few samples for a bound on that side
  std::int64_t samples_needed = 0;       ///< for both bounds
  bool enough = false;                   ///< there are that many
};

/// The quantile q in (0, 1) of samples in ascending order: linear interpolation between order statistics
/// (Hyndman and Fan's type 7, numpy's "linear"), bit for bit as numpy computes it. The interval is a pair of
/// order statistics with exact binomial ranks, at most 2.5% on each side; it assumes independent samples.
/// Nothing when there is no sample.
std::optional<estimate> quantile(std::span<std::int64_t const> sorted, double q);

/// The same for samples that are not in one place: `nth(k)` is the k-th smallest of `count`, from 0.
std::optional<estimate> quantile(std::int64_t count, std::function<std::int64_t(std::int64_t)> const& nth, double q);

/// How many samples both bounds of a quantile's interval need: 368 for 0.99, 3688 for 0.999.
std::int64_t samples_needed(double q);

} // namespace plateau
