// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/run_record.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plateau {

/// Does memory keep rising with requests? The rules and their power: docs/measurement.md, "Growth".
enum class growth_outcome { plateau, inconclusive, growing };

constexpr auto names(growth_outcome) {
  return std::array{std::pair{growth_outcome::plateau, "PLATEAU"},
                    std::pair{growth_outcome::inconclusive, "INCONCLUSIVE"},
                    std::pair{growth_outcome::growing, "GROWING"}};
}

/// One memory series of one rank over its soak. Windows count from 1; 0 is the point before the first.
struct series_growth {
  std::string_view series; ///< allocated_bytes, reserved_bytes, outside_bytes or host_resident_bytes
  growth_outcome outcome = growth_outcome::inconclusive;
  std::string reason; ///< one sentence with its figures, without the series' name

  /// Over the last half: of an allocator series what it rose by, of a noisy one Theil and Sen's slope, and that slope's
  /// 95% interval, widened for autocorrelation.
  double bytes_per_1000_requests = 0;
  std::optional<double> low, high;

  std::optional<std::int64_t> plateau_from; ///< PLATEAU: the window since which it has been level
  std::optional<std::int64_t> onset;        ///< GROWING: the window in which it began to rise

  /// INCONCLUSIVE: how many windows in all would probably tell; absent when more than 10,000.
  std::optional<std::int64_t> windows_needed;

  /// GROWING: until the device (resident set: the machine) has no memory left, at this rate. The ranks of a CPU fill it
  /// together. Absent when its memory is not known, or who else fills it.
  std::optional<double> seconds_to_full;
};

/// What became of a rank's memory: growing if any series is, else inconclusive if any is.
struct rank_growth {
  std::int64_t rank = 0;
  growth_outcome outcome = growth_outcome::plateau;
  std::vector<series_growth> series; ///< without the allocator's where its counters cannot tell
};

/// Judges each rank that has a memory curve, that of a case that did not pass too, in the order of ranks. ranks: all of
/// the run, in order, which tell who shares a machine; without them no time until full is given.
std::vector<rank_growth> judge_growth(case_record const& record, std::span<rank_info const> ranks = {});

/// The case's outcome: growing if any rank is, else inconclusive if any is. Nothing when no rank has a curve.
std::optional<growth_outcome> outcome_of(std::span<rank_growth const> ranks);

} // namespace plateau
