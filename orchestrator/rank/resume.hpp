// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/rank/run.hpp"
#include "orchestrator/rank/shared_folder.hpp"
#include "orchestrator/store/resume.hpp"

#include <cstdint>
#include <vector>

namespace plateau {

/// A run that goes on: the same on every rank.
struct resumed_run {
  earlier_run before;
  resume_plan plan;
  std::int64_t attempt = 2; ///< the one that begins now
};

/// Takes up the run that `options.resume` names: opens its folder, and finds out what of it is there. Each rank reads
/// its own results. A collective. Throws refused, on every rank; then nothing was changed.
resumed_run take_up(communicator& ranks, shared_folder& folder, rank_options const& options);

/// Throws refused when a rank is not where it was in an attempt whose cases are kept: what is measured now would not
/// compare with them.
void refuse_if_moved(resumed_run const& run, std::vector<rank_info> const& now);

} // namespace plateau
