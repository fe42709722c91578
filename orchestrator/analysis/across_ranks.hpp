// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/finding.hpp"
#include "orchestrator/analysis/latency.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plateau {

/// Counters that are not the same on every measured rank, although all do the same work. Compared are all but the peak,
/// at every quiet point: before the timed window, after it, and at each point of the soak.
///
/// - With one worker for all cases (isolation "run") what was before is another case's: then only changes since the
///   point before the timed window are compared.
/// - Where a rank served requests to keep the clocks up (`clock_requests`), of counters of events only these changes
/// are
///   compared: how many such requests each rank served is chance. Levels are compared as they are.
/// - Counters of events are compared only where the ranks have served equally many requests, as they need not have in a
///   soak by time.
/// - The odd ranks are those that differ from the most common series of values; all ranks, when no series is the most
///   common. Counters with the same odd ranks make one finding, told at the first point at which one of them differs.
///
/// Nothing with fresh stream threads (how many of them run at once is chance), where counters are unavailable on some
/// rank, or on fewer than 2 measured ranks.
std::vector<finding> unequal_counters(job const& run, case_record const& record);

/// Ranks that are slower than the others, by their p50, in one finding, the slowest first in its sentence.
///
/// They are compared with the middle of the usual ranks. Those are all ranks, unless the p50s fall into two groups, the
/// fast one a quarter of the ranks or more: then the fast ones. Two groups are such that the slow one's least p50 is
/// more than 10% above the fast one's median, and the gap between the groups is more than 50% or, of logarithms, more
/// than 1 + 10 / ranks times as wide as either group. Of several such divisions the one with the fewest fast ranks.
///
/// A rank is a straggler when the 95% interval of its p50 lies above that of the middle usual rank, and
///
/// - in the slow group, with fewer than 5 usual ranks, or where their MAD is 0: its p50 is more than 10% above the
///   usual ranks' median;
/// - else: its p50 is more than 3% above that median, and its modified z-score 0.6745 (p50 - median) / MAD (Iglewicz
///   and Hoaglin, How to Detect and Handle Outliers, 1993) is above 3.5 + 40 / usual ranks, as the slowest of few
///   healthy ranks is often above 3.5.
///
/// Nothing with fewer than 2 ranks whose samples suffice for an interval.
std::vector<finding> stragglers(case_latencies const& latencies);

/// How far the measured ranks of a case are apart.
struct spread {
  double skew = 1;                           ///< the largest over the smallest p50 of a rank
  std::int64_t slowest_rank = 0;             ///< the one with the largest p50
  std::int64_t max_latency_ns = 0;           ///< of all requests of all ranks
  std::optional<std::int64_t> start_skew_ns; ///< last gate opened after first, on the host where that is most; absent
                                             ///< when no host has two measured ranks: other clocks do not compare
};

/// Nothing when no rank was measured. `latencies` are those of `record`, a case of `run`.
std::optional<spread> spread_of(run_record const& run, case_record const& record, case_latencies const& latencies);

} // namespace plateau
