// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace plateau {

/// Runs a program to its end, found on PATH, in the caller's process group, with nothing open but an empty
/// stdin and `log` as its stdout and stderr. `environment` is set on top of the caller's own. Returns its
/// exit status, or 128 and the signal that ended it. Throws std::system_error when it cannot be started.
int run_child(std::vector<std::string> const& arguments, std::map<std::string, std::string> const& environment,
              std::filesystem::path const& log);

} // namespace plateau
