// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/quantile.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace plateau {

/// The percentiles that are reported: their key in summary.json and their quantile.
struct percentile {
  std::string_view name;
  double q;
};
inline constexpr std::array percentiles{percentile{"p50", 0.5}, percentile{"p95", 0.95}, percentile{"p99", 0.99},
                                        percentile{"p99_9", 0.999}};

/// A set of latencies, summarised. Nanoseconds.
struct latency_summary {
  std::int64_t count = 0;
  std::array<estimate, percentiles.size()> at; ///< in the order of `percentiles`
  double mean = 0;
  std::int64_t min = 0, max = 0;
};

/// The latencies of one case: each measured rank's in ascending order, in the order of ranks.
using sorted_runs = std::vector<std::vector<std::int64_t>>;

/// Sorts times in nanoseconds; none is negative.
void sort_times(std::vector<std::int64_t>& times);

/// The k-th smallest, from 0, of all runs together.
std::int64_t nth_smallest(std::span<std::vector<std::int64_t> const> runs, std::int64_t k);

/// Summarises all runs together, exactly, as if they had been pooled and sorted. Nothing when there is no
/// sample.
std::optional<latency_summary> summarise(std::span<std::vector<std::int64_t> const> runs);

} // namespace plateau
