// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/run_folder.hpp"
#include "schemas/job.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Which cases of a run are there, and which are to be run when it is resumed. docs/resume.md has the rules.
namespace plateau {

/// What the user says of the run that is to be resumed.
struct resume_request {
  std::filesystem::path folder;                  ///< or a file in it
  std::optional<std::filesystem::path> job_file; ///< absent: the run's own job
  std::vector<job_override> overrides;
  std::optional<std::int64_t> ranks; ///< how many there will be; absent: as many as the run had
};

/// A run that can be resumed. `run` is info's job.
struct earlier_run {
  run_folder folder;
  run_info info;
  job run;
};

/// Throws input_error when the folder holds no run, a merged one or a rehearsal; when the job that is asked for is
/// another one, with all differences; when the number of ranks is. A job that leaves its device to plateau is the same
/// if all else is, and its name is but a label.
earlier_run open_to_resume(resume_request const& request);

/// A case of which every rank's result is there, and the attempt that they are of.
struct kept_case {
  case_id id;
  std::int64_t attempt = 1;
};

struct resume_plan {
  std::vector<case_id> to_run; ///< in the order of the grid, as are the kept ones
  std::vector<kept_case> kept;
};

/// The cases that seem to be there: every rank has a file of one attempt. No file is read.
std::vector<kept_case> cases_by_name(earlier_run const& run);

/// Whether a rank's result is whole, of this run, and final. Every status is, since each is a result; with
/// `retry_failed` only passed. Reads the whole file.
bool is_final(earlier_run const& run, kept_case const& seems, std::int64_t rank, bool retry_failed);

/// A case is kept if all its ranks' results stand; `stands` tells it for each of `seem`. The others are to be run, on
/// every rank.
resume_plan plan_of(job const& run, std::span<kept_case const> seem, std::vector<bool> const& stands);

/// The whole plan, read here and now.
resume_plan plan_resume(earlier_run const& run, bool retry_failed);

/// The last words of a run that was broken off: the command that goes on with it, or that a rehearsal has none.
std::string how_to_go_on(std::filesystem::path const& folder, bool rehearsal);

/// The run's gates are these from now on. Throws std::system_error.
void judge_by(earlier_run const& run, gates const& asked);

/// Takes away what an earlier attempt has made of its results, and how it ended: nothing in the folder shall claim to
/// be complete while the run goes on. Throws std::system_error.
void retract_results(run_folder const& folder);

} // namespace plateau
