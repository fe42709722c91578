// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/finding.hpp"
#include "orchestrator/analysis/growth.hpp"
#include "orchestrator/analysis/latency.hpp"
#include "schemas/run_record.hpp"

#include <vector>

namespace plateau {

/// What plateau concludes of one case.
struct case_judgement {
  std::vector<rank_growth> growth; ///< one for each rank that has a soak curve, in the order of ranks
  std::vector<finding> findings;   ///< in the order of checks::all
  std::vector<unmade> not_made;    ///< of a measured case: the checks that could not be made, in the same order
};

/// Judges a case of the run. The samples of the record are not looked at: `latencies` has what was computed of them.
case_judgement judge_case(run_record const& run, case_record const& record, case_latencies const& latencies);

} // namespace plateau
