// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// Gates are checks whose findings make a run bad: exit code 4.
inline constexpr std::string_view default_gates = "growing";

/// "growing, inconclusive, ...": the names of all checks.
std::string check_names();

/// Reads "growing,straggler", or "none". Throws input_error when a name is no check's.
std::vector<std::string> parse_gates(std::string_view list);

/// Which of the gates a summary's findings fail, and in which cases: "growing in eager.c2, eager.c4; churn in ...".
/// Empty when they pass. A check that was not made, for lack of a soak say, has no finding: the table names those.
std::string failed_gates(json const& summary, std::span<std::string const> gates);

} // namespace plateau
