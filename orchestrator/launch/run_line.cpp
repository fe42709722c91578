// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/run_line.hpp"

namespace plateau {

namespace {

constexpr char record_separator = '\x1e';

} // namespace

std::string to_line(run_line const& line) {
  std::string text{record_separator, static_cast<char>(line.what)};
  for (char const c : line.text)
    text += c == '\n' ? record_separator : c; // a text of several lines stays one line here
  return text + "\n";
}

std::optional<run_line> run_line_of(std::string_view line) {
  if (line.size() < 2 || line[0] != record_separator) return std::nullopt;
  auto const what = static_cast<run_line::kind>(line[1]);
  if (what != run_line::kind::note && what != run_line::kind::status && what != run_line::kind::refusal)
    return std::nullopt;
  run_line parsed{what, {}};
  for (char const c : line.substr(2)) parsed.text += c == record_separator ? '\n' : c;
  return parsed;
}

} // namespace plateau
