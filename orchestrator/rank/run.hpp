// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/launch/rehearsal.hpp"
#include "schemas/job.hpp"
#include "schemas/run_record.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// How a run goes on that was begun before.
struct resume_options {
  std::filesystem::path folder;
  bool allow_moved = false;  ///< beside cases that were measured on other devices
  bool retry_failed = false; ///< cases that did not pass are run again, skipped ones too
};

/// What a rank is told on its command line: the same on every rank.
struct rank_options {
  std::optional<std::filesystem::path> job_file; ///< absent only when a run is resumed, with its own job
  std::vector<job_override> overrides;
  std::optional<resume_options> resume;        ///< absent: a new run
  std::optional<std::filesystem::path> folder; ///< of a new run; absent: runs/<run id>
  bool folder_is_ours = true;                  ///< its name is the run id, and `latest` beside it may point to it
  std::filesystem::path worker;                ///< the worker's program
  std::string launcher = "external";           ///< who started the ranks: "mpirun", "srun", "external"
  std::optional<std::int64_t> expected_ranks;  ///< how many the front end asked for, or a launcher says
  std::chrono::duration<double> grace{30};     ///< for the current case, after a request to stop
  std::vector<std::string> command_line;
  std::optional<gates> fail_on;  ///< absent: the default ones, or those of the run that is resumed
  bool allow_shared_gpu = false; ///< run although ranks have the same GPU, and mark the run
  std::string blind_to;          ///< as assemble() takes it
  std::optional<rehearsal> rehearsed;
};

/// What rank 0 knows at the end; the other ranks: exit_code::good, always, since a rank that exits with an
/// error gets rank 0 killed.
struct rank_end {
  exit_code code = exit_code::good;
  std::optional<std::filesystem::path> folder; ///< the run folder, on rank 0, when there is one
};

/// Runs the job as one of its ranks: MPI_Init to MPI_Finalize. Does not return when agreement with the other
/// ranks is lost, or on SIGTERM: then what is there is durable, the worker dead, and the process exits
/// with 75.
rank_end run_as_rank(rank_options const& options);

} // namespace plateau
