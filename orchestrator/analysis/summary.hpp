// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/judgement.hpp"
#include "orchestrator/analysis/latency.hpp"
#include "schemas/codec.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plateau {

inline constexpr format_version summary_format{"plateau.summary", 1, 2};

/// summary.json, described in docs/results.md and schemas/summary.schema.json: a superset of the seed's
/// result file. `latencies` and `judgements` have one entry for each of run.cases. The samples of the record are not
/// looked at.
json summary_of(run_record const& run, std::span<case_latencies const> latencies,
                std::span<case_judgement const> judgements);

} // namespace plateau
