// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/quantile.hpp"
#include "orchestrator/analysis/steadiness.hpp"

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

/// Of one case, what was computed of its samples while they were at hand. One place for each rank of the world.
struct case_latencies {
  std::optional<latency_summary> pooled; ///< over the measured ranks; absent when there is none
  std::vector<std::optional<latency_summary>> by_rank;
  std::vector<std::optional<steadiness>> steadiness_by_rank;
};

/// Takes the samples out of one case's results, rank by rank, and keeps what is to be known of them.
class latency_collector {
public:
  explicit latency_collector(std::size_t world);

  /// Empties start_ns and latency_ns. The ranks in ascending order, each once. A rehearsal's are not taken: then all is
  /// absent.
  void take(std::int64_t rank, measurement& m);
  /// To be called once, when all measured ranks were taken.
  case_latencies finish();

private:
  case_latencies out_;
  std::vector<std::vector<std::int64_t>> sorted_; // each taken rank's latencies
};

/// Sorts times in nanoseconds; none is negative.
void sort_times(std::vector<std::int64_t>& times);

/// The k-th smallest, from 0, of all runs together.
std::int64_t nth_smallest(std::span<std::vector<std::int64_t> const> runs, std::int64_t k);

/// Summarises all runs together, exactly, as if they had been pooled and sorted. Nothing when there is no
/// sample.
std::optional<latency_summary> summarise(std::span<std::vector<std::int64_t> const> runs);

} // namespace plateau
