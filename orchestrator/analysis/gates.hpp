// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <string>
#include <string_view>

namespace plateau {

/// What a run is held to when its user says nothing: that memory does not grow, where that can be told.
gates default_gates();

/// "growing, inconclusive, ...": the names of all checks.
std::string check_names();

/// Reads "growing,straggler", or "none": strict gates, since they were asked for. Throws input_error when a name is no
/// check's.
gates parse_gates(std::string_view list);

/// Throws input_error when the job cannot give what a strict gate looks at: growth needs a soak of six windows.
void refuse_gates_without_a_soak(gates const& g, job const& j);

/// Which of the gates a summary fails, and in which cases: "growing in eager.c2, eager.c4; straggler not told in ...".
/// Empty when they pass.
std::string failed_gates(json const& summary, gates const& g);

} // namespace plateau
