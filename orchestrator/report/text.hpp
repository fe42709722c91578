// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace plateau {

/// A number through one printf conversion.
std::string formatted(char const* format, double value);

/// A count, a rate, or events per request: a whole number as one, else with a digit or two; "-" for null.
std::string count_text(json const& number);

/// "8 MiB", "1.5 KiB", "-96 B"; "-" for null.
std::string bytes_text(json const& number);

/// "REHEARSAL on NVIDIA H200 (sm_90, 139.8 GiB, 132 SMs), which is only pretended: its memory, and no times", a line;
/// or nothing, of the summary of a run that is none.
std::string rehearsal_line(json const& summary);

/// The cells of a line; the first and the last column are text, the others numbers.
using row = std::vector<std::string>;

/// How wide each column of a table is. The first row has all columns.
std::vector<std::size_t> widths_of(std::vector<row> const& rows);

/// One line: text to the left, numbers to the right, nothing after the last cell.
std::string line(row const& cells, std::vector<std::size_t> const& widths);

} // namespace plateau
