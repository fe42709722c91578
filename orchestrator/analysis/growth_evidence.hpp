// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace plateau {

/// One memory series at its quiet points: columns of equal length, in the order of time.
struct memory_curve {
  std::vector<double> x;       ///< requests completed: ascending, none twice, unevenly spaced where points are missing
  std::vector<double> y;       ///< bytes
  std::vector<double> seconds; ///< since the soak began
  std::vector<std::int64_t> window; ///< after which the point was taken; 0 is before the first

  std::size_t size() const { return x.size(); }
  std::int64_t windows() const { return window.back(); }
  double soak() const { return x.back() - x.front(); } ///< requests
};

/// A one-off: so many bytes more from this window on.
struct memory_step {
  std::int64_t window;
  double bytes;
};

/// What a series without noise does in its last half. Its upper envelope is the highest value so far, its lower
/// envelope the lowest from there on: a saw-tooth moves between the two, and only growth raises both.
struct exact_moves {
  std::size_t half = 0, quarter = 0; ///< the points at which the last half and the last quarter begin
  std::int64_t rises = 0, falls = 0; ///< from one point to the next
  std::int64_t troughs = 0;          ///< where falls end
  std::int64_t maxima = 0;           ///< higher than all before
  std::int64_t late_maxima = 0;      ///< the same, but what came before the second quarter is not looked at
  std::int64_t minima = 0;           ///< how often the lower envelope rises, up to the last point that ends a fall
  std::int64_t sure_minima = 0; ///< how often it rises if one more fall, of the greatest size seen, follows the end
  double third_rose = 0, fourth_rose = 0; ///< bytes: the middle of both envelopes, in the last two quarters
};

exact_moves moves_of(memory_curve const& curve);

/// What tells growth from noise in a series that has noise. Bytes; a slope is given as what it makes of the whole soak.
/// docs/measurement.md, "Growth", has the rules that read it.
struct growth_evidence {
  memory_curve trend;                 ///< thinned if it is long, without the one-off
  std::optional<memory_step> one_off; ///< the largest step up, if it is beyond doubt
  double threshold = 0;               ///< the practical threshold

  double p = 1;          ///< of the trend from a quarter of the soak on: one-sided, autocorrelation reckoned with
  double rise = 0;       ///< of the whole curve
  double prominence = 0; ///< the same, in scatters around the line

  double half_rise = 0, low_rise = 0, high_rise = 0; ///< of the last half, with its 95% interval
  double half_prominence = 0;                        ///< its rise in the last half, in scatters there, or pages
  double half_range = 0;                             ///< greatest less least value of the last half
  double late_rise = 0;       ///< the last three points' greatest, above the median of the rest of the last half; a
                              ///< one-off of the last quarter is put back
  bool levelling_off = false; ///< the rise is getting slower
  bool is_a_step = false;     ///< two levels fit better than a line
  bool new_height = false;    ///< the last quarter is higher than all before, by more than falls and noise explain
};

inline constexpr double page_bytes = 4096; ///< in which a machine gives memory

/// The least rise over a whole soak, in bytes, that counts in a noisy series at this level: 1 MiB, or 0.1% of it if
/// that is more.
double practical_threshold(double level);

/// Weighs a curve of at least seven points.
growth_evidence weigh(memory_curve const& curve);

/// The window in which a rise began: least squares of a level followed by a line. At least three points.
std::int64_t bend_of(memory_curve const& curve);

} // namespace plateau
