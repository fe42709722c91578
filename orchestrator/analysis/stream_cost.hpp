// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/run_record.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// What one more stream costs in device memory, in one mode: reserved bytes against concurrency.
struct stream_cost {
  std::string mode;
  std::vector<std::int64_t> concurrency, reserved_bytes; ///< what the line was fitted to, ascending in concurrency
  double bytes_per_stream = 0;                           ///< the line's slope; may be 0 or below
  double bytes_at_none = 0;                              ///< and its value at no stream: weights, above all
  double residual_bytes = 0;                  ///< the largest distance of a point from the line; 0 with two points
  std::optional<std::int64_t> capacity_bytes; ///< device memory of one rank that the allocator could reserve
  std::optional<std::int64_t> most_streams; ///< that fit in it, by the line; absent: they cost nothing, or no capacity
};

/// The least concurrency that would not fit into the device's memory, and how many bytes it would need, by the line.
struct unfit {
  std::int64_t concurrency = 0;
  double bytes = 0;
};
std::optional<unfit> first_unfit(stream_cost const& cost); ///< nothing where most_streams is absent

/// Of a run: one entry for each mode that was measured at 2 or more levels of concurrency, or why there is none.
struct stream_costs {
  std::vector<stream_cost> modes;
  std::string why_none; ///< in words; empty when there are modes
};

/// Fits a line through the reserved bytes of each mode, by least squares; through two points it is exact. A level's
/// reserved bytes are the largest over its quiet points, measured ranks and repeats: the rank that needs most decides.
/// This needs a fresh worker for each case (isolation "case"): else a case holds what those before it reserved.
///
/// The capacity is the device's memory less the largest outside bytes that a rank saw, on the rank that has least left.
/// On the CPU the ranks of a host share its memory evenly. On a GPU that ranks share it is absent: what the others
/// reserve grows with the streams too, and is among each one's outside bytes.
stream_costs stream_costs_of(run_record const& run);

/// "eager: each stream adds 24.0 MiB to 52.0 MiB; c471 would not fit: 470 streams fill the 11.5 GiB that the allocator
/// can have".
std::string told(stream_cost const& cost);

} // namespace plateau
