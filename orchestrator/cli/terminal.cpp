// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/terminal.hpp"

#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace plateau {

namespace {

constexpr std::string_view clear_line = "\r\x1b[K";

} // namespace

terminal::terminal() : live_(isatty(STDERR_FILENO) == 1) {}

void terminal::line(std::string_view text) {
  if (!shown_.empty()) std::cerr << clear_line;
  std::cerr << text << '\n' << shown_ << std::flush;
}

void terminal::status(std::string_view text) {
  if (!live_ || text == shown_) return;
  constexpr std::size_t narrowest = 79; // longer lines would wrap, and could not be cleared
  shown_ = std::string(text.substr(0, narrowest));
  std::cerr << clear_line << shown_ << std::flush;
}

bool colour_wanted() { return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

} // namespace plateau
