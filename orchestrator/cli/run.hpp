// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/outcome.hpp"
#include "orchestrator/launch/gpu_model.hpp"
#include "schemas/job.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// What was typed of a run, or of the rehearsal of one.
struct run_flags {
  std::string subcommand = "run"; ///< by which the ranks are started, too
  std::optional<std::string> job_file, resume;
  bool allow_moved = false, retry_failed = false;
  std::vector<job_override> fields; ///< as typed
  std::optional<std::int64_t> ranks;
  std::optional<std::string> folder, launcher;
  std::vector<std::string> launch_args;
  std::optional<std::string> fail_on;
  std::string blind_to;         ///< for selftest's own test
  std::optional<gpu_model> gpu; ///< to rehearse on
  bool dry_run = false, allow_shared_gpu = false;
  double grace = 30;
  std::string worker;
  bool as_rank = false, folder_is_ours = false;
  std::string started_by = "external", typed; ///< the front end's own command line, a JSON list
  std::optional<std::int64_t> expected_ranks;
};

/// The options that a run and a rehearsal have, with those of the job's fields.
void add_run_options(CLI::App& command, std::shared_ptr<run_flags> const& flags);

/// Does what was asked for, in whatever role this process has: the front end, or one of the ranks.
exit_code run(run_flags const& flags);

} // namespace plateau
