// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/judgement.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <span>

namespace plateau {

/// A measured case's entry in the summary's results[]: the seed's keys pooled over the measured ranks, ours,
/// and under `ranks` the same keys for each of them. Counters and bytes are summed across ranks, the wall
/// time is the longest. At least one rank has measured. `growth` is null where there was no soak, and everything that
/// is a time, or is made of times, where `latencies` are absent: in a rehearsal.
json result_summary(run_record const& run, case_record const& record, case_latencies const& latencies,
                    case_judgement const& judgement);

/// The first thing that happened in a measured rank's timed window although memory was to be stable; nothing when it
/// was, and when the counters cannot tell.
std::string instability(case_result const& result);

/// A memory curve as columns of equal length, one element for each quiet point; with its times, if `timed`.
json soak_columns(std::span<memory_point const> points, bool timed);

/// A JSON number, or null for one that is not finite: JSON has no other.
json number(double value);

} // namespace plateau
