// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"

#include <string>

namespace plateau {

/// Where each allocation of a run comes from: for every measured case with a tracked window its operators with events
/// and bytes per request, their sums beside the allocator's counters, what the timed window holds beyond the steady
/// churn, how each memory series was judged on each rank,
/// and what a further stream costs. Throws format_error as table() does.
std::string explanation(json const& summary);

} // namespace plateau
