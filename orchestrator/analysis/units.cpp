// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/units.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace plateau {

std::string number_text(double x) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), std::abs(x) >= 100 ? "%.0f" : "%.3g", x + 0.0); // + 0: no negative zero
  return text.data();
}

std::string bytes_text(double bytes) {
  constexpr std::array units{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  for (; std::abs(bytes) >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return number_text(bytes) + units[unit];
}

} // namespace plateau
