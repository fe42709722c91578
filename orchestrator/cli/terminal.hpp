// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace plateau {

/// Standard error as a person sees it: lines that stay, and on a terminal one live line below them.
class terminal {
public:
  terminal();
  ~terminal() { status(""); }
  terminal(terminal const&) = delete;
  terminal& operator=(terminal const&) = delete;

  void line(std::string_view text);
  void status(std::string_view text); ///< replaces the live line; does nothing when standard error is no terminal

private:
  bool live_;
  std::string shown_;
};

/// True when colour is welcome on standard output: a terminal, and NO_COLOR is not set.
bool colour_wanted();

} // namespace plateau
