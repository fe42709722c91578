// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plateau {

/// How rank 0 tells its front end, through the launcher's standard output, what to show. Other output of the
/// ranks passes by unchanged.
struct run_line {
  enum class kind : char {
    note = 'N',   ///< a line that stays
    status = 'S', ///< what is going on; each replaces the one before, on a terminal only
    refusal = 'R' ///< why the run was refused; nothing was measured
  };
  kind what;
  std::string text;
};

std::string to_line(run_line const& line);                  ///< newline included
std::optional<run_line> run_line_of(std::string_view line); ///< without its newline; nothing: not one of ours

} // namespace plateau
