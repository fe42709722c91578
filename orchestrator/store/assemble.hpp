// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// What was assembled from a run folder's raw results.
struct assembly {
  run_record record;                   ///< the samples (start_ns, latency_ns) dropped: run.h5 has them
  json summary;                        ///< as written to summary.json
  exit_code code = exit_code::good;    ///< what the cases and the run's gates say
  std::vector<std::string> complaints; ///< results that were left out since they cannot be read: a sentence each
};

/// The one road from raw results to results: reads run.json and cases/, writes run.h5 and summary.json, each
/// in one step. Works on the folder of a finished and of a killed run alike; what is not there is
/// named as missing. `outcome` is how the run ended; without it outcome.json tells, if there. An outcome that is good
/// becomes what the cases and the gates say of it. Holds one
/// rank's raw result at a time, and the latencies of one case. Throws input_error when run.json is damaged,
/// std::system_error or std::runtime_error when writing fails.
/// `blind_to` is a check whose findings are dropped, so that a test can see that selftest notices.
assembly assemble(run_folder const& folder, std::optional<run_outcome> outcome = std::nullopt,
                  std::string_view blind_to = {});

} // namespace plateau
