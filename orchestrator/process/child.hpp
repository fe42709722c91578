// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace plateau {

/// SIGINT, SIGTERM or SIGHUP came while a child ran.
struct interrupted : std::runtime_error {
  explicit interrupted(int which) : std::runtime_error("told to stop"), signal(which) {}
  int signal;
};

/// Runs a program with its output going to a file, and waits for it. Its exit code; 128 and more: it was killed by that
/// signal, and 137 also when it took longer than `longest`. When it returns or throws, nothing that was started is
/// left. Throws std::system_error when the program cannot be started, interrupted when this process is told to stop.
int run_child(std::vector<std::string> command, std::filesystem::path const& output, std::chrono::seconds longest);

} // namespace plateau
