// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace plateau {

/// Runs a program with its output going to a file, and waits for it. Its exit code; 128 and more: it was killed by that
/// signal, and 137 also when it took longer than `longest`. Throws std::system_error when it cannot be started.
int run_child(std::vector<std::string> command, std::filesystem::path const& output, std::chrono::seconds longest);

} // namespace plateau
