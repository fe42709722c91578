// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/report/text.hpp"

#include "orchestrator/analysis/units.hpp"

#include <algorithm>
#include <cstdio>

namespace plateau {

std::string formatted(char const* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string count_text(json const& number) {
  if (number.is_null()) return "-";
  if (number.is_number_integer()) return number.dump();
  auto const value = number.get<double>();
  return formatted(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
}

std::string bytes_text(json const& number) { return number.is_null() ? "-" : bytes_text(number.get<double>()); }

std::string rehearsal_line(json const& summary) {
  auto const rehearsal = summary.value("rehearsal", json());
  if (rehearsal.is_null()) return "";
  return "REHEARSAL on " + rehearsal["gpu"].get<std::string>() +
         ", which is only pretended: its memory, and no times\n";
}

std::vector<std::size_t> widths_of(std::vector<row> const& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (auto const& cells : rows)
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  return widths;
}

constexpr std::size_t gap = 2;

std::string line(row const& cells, std::vector<std::size_t> const& widths) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto const padding = std::string(widths[i] - cells[i].size(), ' ');
    bool const last = i + 1 == widths.size();
    if (i > 0) text += std::string(gap, ' ');
    text += last ? cells[i] : i == 0 ? cells[i] + padding : padding + cells[i];
  }
  return text;
}

} // namespace plateau
