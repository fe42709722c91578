// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/launch/context.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// How the ranks are to be started.
struct launch_plan {
  launch_role role = launch_role::start_mpirun;
  std::int64_t ranks = 1;
  std::vector<std::string> launcher_args; ///< the user's own; they replace the choice of hosts
  std::vector<std::string> program;       ///< what each rank runs: the path of plateau and its arguments
};

/// How many ranks: as asked for; else, in a Slurm allocation, as many as it has tasks, or GPUs, or nodes; elsewhere one
/// per visible GPU, else 1.
std::int64_t rank_count(std::optional<std::int64_t> asked, launch_role role, environment const& env,
                        std::int64_t visible_gpus);

/// The launcher's whole command line.
std::vector<std::string> launch_command(launch_plan const& plan);

/// The environment in which the launcher is started. `as_root`: mpirun refuses to run as root unless it is
/// told twice. srun takes the allocation's description from it, and what the allocation leaves open.
environment launch_environment(launch_plan const& plan, environment env, bool as_root);

/// A command line as it could be typed in a shell.
std::string shell_text(std::vector<std::string> const& command);

} // namespace plateau
