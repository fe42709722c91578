// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/latency.hpp"
#include "schemas/codec.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plateau {

inline constexpr format_version summary_format{"plateau.summary", 1, 0};

/// The latencies of one case, summarised while its samples were at hand.
struct case_latencies {
  std::optional<latency_summary> pooled;               ///< over the measured ranks; absent when there is none
  std::vector<std::optional<latency_summary>> by_rank; ///< one place for each rank of the world
};

/// summary.json, described in docs/results.md and schemas/summary.schema.json: a superset of the seed's
/// result file. `latencies` has one entry for each of run.cases. The samples of the record are not looked at.
json summary_of(run_record const& run, std::span<case_latencies const> latencies);

} // namespace plateau
