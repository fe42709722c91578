// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace plateau {

using environment = std::map<std::string, std::string>;

/// The calling process's environment.
environment current_environment();

/// All that decides what a `plateau run` is. Gathered once, so that the rule itself is a pure function.
struct surroundings {
  environment env;
  bool as_rank = false;          ///< --as-rank was given: a front end of ours started this process
  bool pmix_server_runs = false; ///< the folder $PMIX_SERVER_TMPDIR exists
  bool has_terminal = false;     ///< /dev/tty opens
};

surroundings look_around(bool as_rank);

/// What a `plateau run` is, where it was typed.
enum class launch_role {
  rank,         ///< one of the ranks: only such a process calls MPI_Init
  start_mpirun, ///< the front end; the ranks are started by mpirun on this machine
  start_srun,   ///< the front end, in a Slurm allocation; the ranks are started by srun
};

/// Tells the roles apart (docs/architecture.md has the rule in words). Throws input_error with how to launch
/// instead when this process was started as one of several that cannot find each other.
launch_role where_am_i(surroundings const& around);

/// `env` without what the launcher that started this process left in it, the user's own settings of Open MPI and PMIx
/// (OMPI_MCA_, PMIX_MCA_) kept where no launcher rewrote them: for a launcher of our own.
environment for_own_launcher(environment env);

/// The same for srun and sbatch of our own: what says which cluster it is stays. `in_allocation`: so does what
/// describes the job that this process is a part of, for its srun.
environment for_own_slurm(environment env, bool in_allocation = false);

/// How many ranks the launcher that started this rank says there are; nothing when it does not say.
std::optional<std::int64_t> launched_ranks(environment const& env);

/// `env` without what a launcher of MPI processes leaves in it (OMPI_, PMIX_, PMI_, SLURM_): for a process
/// that must not take itself for one of its ranks.
environment without_launcher(environment env);

} // namespace plateau
