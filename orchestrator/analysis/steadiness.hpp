// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/finding.hpp"
#include "schemas/case_result.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace plateau {

/// What a rank's latency does within the timed window: it keeps its level; it changes evenly from the first request to
/// the last; it changes fast at first and then less and less, as while caches warm up; it changes its level once for
/// all; or it leaves its level for a while.
enum class latency_course { steady, drift, settling, shift, episode };

constexpr auto names(latency_course) {
  return std::array{std::pair{latency_course::steady, "steady"}, std::pair{latency_course::drift, "drift"},
                    std::pair{latency_course::settling, "settling"}, std::pair{latency_course::shift, "shift"},
                    std::pair{latency_course::episode, "episode"}};
}

/// The smallest change of the level that counts, whatever the noise.
inline constexpr double notable_change = 0.05;

/// A rank's latency over its timed window. Shares of the window count requests; times are nanoseconds since the gate
/// opened.
struct steadiness {
  latency_course course = latency_course::steady;
  double change = 0;        ///< relative, of the level: over the window, after a shift, during an episode; steady: 0
  double from = 0, to = 1;  ///< where in the window the other level, or the drift, holds
  std::int64_t from_ns = 0; ///< when that began
  double noise = 0;         ///< relative standard deviation of a block's level, raised where blocks are correlated
  double detectable = 0;    ///< a lasting change half-way that would be found as often as not; never below 5%
};

/// Cuts every stream thread's requests into 30 blocks in time order. A block's level is the logarithm of the mean of
/// the middle half of its latencies, those of all threads together: each block has the same share of every thread, so
/// that a thread slower than the others is no change, and neither are stalls of up to a quarter of the requests. Of
/// more than about 512 latencies in a block, every so many-th is taken.
///
/// Three courses are fitted to the levels by least squares: a straight line; an exponential approach over 1.5, 3 or 6
/// blocks; and two levels, one inside and one outside of some run of at least 3 blocks (the statistic of circular
/// binary segmentation: Olshen, Venkatraman, Lucito, Wigler, Biostatistics 5, 2004), which is an episode, or a shift if
/// it lasts to the end. A course counts if its change is at least `notable_change` and at least 5 (line) or 6.5 (the
/// best of several) of its standard errors, these widened by sqrt((1 + r) / (1 - r)) for the residuals' correlation r
/// from block to block. Of those that count the one that leaves least unexplained is named.
///
/// Nothing with fewer than 30 requests per stream thread, or than 240 in all.
std::optional<steadiness> steadiness_of(measurement const& m);

/// The ranks of a case whose latency is not steady, in one finding; `by_rank` has a place for each rank of the world.
/// Nothing when all are steady or cannot be judged.
std::optional<finding> unsteady(std::span<std::optional<steadiness> const> by_rank);

} // namespace plateau
