// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace plateau {

/// JSON that keeps the order in which its keys were written, so that files read as they were meant to.
using json = nlohmann::ordered_json;

/// Documents that are nested deeper than this are refused while they are read: parsers recurse.
inline constexpr int deepest_nesting = 64;

} // namespace plateau
