// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"

#include <string>

namespace plateau {

struct table_style {
  bool colour = false; ///< ANSI colours
};

/// A summary as the table that people read in a terminal: what ran, a line for each case of the grid,
/// footnotes, and what is known of the memory. Ends with a newline. Throws format_error when `summary` is no
/// plateau summary that this version reads.
std::string table(json const& summary, table_style style = {});

} // namespace plateau
