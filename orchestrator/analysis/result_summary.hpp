// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/summary.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <span>

namespace plateau {

/// A measured case's entry in the summary's results[]: the seed's keys pooled over the measured ranks, ours,
/// and under `ranks` the same keys for each of them. Counters and bytes are summed across ranks, the wall
/// time is the longest. At least one rank has measured.
json result_summary(run_record const& run, case_record const& record, case_latencies const& latencies);

/// A memory curve as columns of equal length, one element for each quiet point.
json soak_columns(std::span<memory_point const> points);

/// A JSON number, or null for one that is not finite: JSON has no other.
json number(double value);

} // namespace plateau
