// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/latency.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plateau {

/// How much the repeats of one case differ, although nothing was changed between them (A/A). Relative: the largest over
/// the smallest, less 1.
struct noise_floor {
  std::string mode;
  std::int64_t concurrency = 1;
  std::int64_t repeats = 0;     ///< that were measured on every rank; at least 2
  double p50_spread = 0;        ///< of the p50 over all ranks
  double throughput_spread = 0; ///< of all requests over the longest rank's wall time
};

/// Of each mode and concurrency with at least 2 repeats that passed on every rank, in the order of the run.
/// `latencies` has one entry for each of run.cases.
std::vector<noise_floor> noise_floors(run_record const& run, std::span<case_latencies const> latencies);

/// What the floors say of the run, in a sentence; empty when there are none. The worst case speaks for all: with two or
/// three repeats a single spread is a rough figure, and likely too small.
std::string told(std::span<noise_floor const> floors);

} // namespace plateau
