// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/launch/command.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace plateau {

/// The process that was typed: starts the ranks, and owns the terminal, the progress, the signals and the
/// exit code. The launcher runs in a process group of its own. The first SIGINT, SIGTERM, SIGHUP or SIGUSR1
/// becomes SIGUSR1 to the ranks (finish the case, then stop), the second stops them at once. When the ranks die
/// without an outcome, what they left in `folder` is assembled here. `attempts` are those that the run in the folder
/// had before; 0: it is a new one.
exit_code start_ranks(launch_plan const& plan, std::filesystem::path const& folder, std::int64_t attempts);

/// What a finished run has to say, on standard output: the table, and last the folder's path.
void show_end_of_run(std::filesystem::path const& folder);

} // namespace plateau
