// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_id.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plateau {

/// Where everything of a run lies. docs/results.md describes each file.
struct run_folder {
  std::filesystem::path path;

  std::filesystem::path job_json() const { return path / "job.json"; }
  std::filesystem::path run_json() const { return path / "run.json"; }
  std::filesystem::path outcome_json() const { return path / "outcome.json"; }
  std::filesystem::path cases() const { return path / "cases"; }
  std::filesystem::path logs() const { return path / "logs"; }
  std::filesystem::path run_h5() const { return path / "run.h5"; }
  std::filesystem::path summary_json() const { return path / "summary.json"; }
  std::filesystem::path lock() const { return path / "run.lock"; }
  /// cases/eager.c4/rank-00003.cbor, of a later attempt cases/eager.c4/rank-00003.attempt-2.cbor
  std::filesystem::path raw_result(case_id const& id, std::int64_t rank, std::int64_t attempt = 1) const;
  std::filesystem::path worker_log(std::int64_t rank) const; ///< logs/rank-00003.log
};

/// "20260304T101500Z-smoke_cpu-7f3a": the time in UTC, the job's name made safe for a file name, four random
/// digits.
std::string new_run_id(std::string_view job_name);

/// The job's name with what has no place in a file name replaced by '_'; at most 60 characters, at least one.
std::string safe_for_a_file_name(std::string_view job_name);

/// Throws input_error when there is anything but an empty folder at `path`.
void refuse_if_taken(std::filesystem::path const& path);

/// Makes the folder, its parents, `cases` and `logs`. An empty folder is taken as it is; anything else that
/// exists is refused with input_error, so that no earlier run is ever overwritten. Throws std::system_error
/// when the file system refuses.
run_folder create_run_folder(std::filesystem::path const& path);

/// The folder of an earlier run, given by itself or by a file in it (summary.json, run.h5, ...).
/// Throws input_error when it is no run folder.
run_folder open_run_folder(std::filesystem::path const& path);

/// The attempt whose results of a case count, as far as the files' names tell: the last that has one of every rank;
/// if none has, the one with the most, of those the last. Results of two attempts are never mixed. 1 when there are
/// none.
struct counted_attempt {
  std::int64_t attempt = 1;
  std::int64_t ranks = 0; ///< that have a file
};
counted_attempt attempt_that_counts(run_folder const& folder, case_id const& id, std::int64_t world);

/// The same of a run of which each folder holds a part.
counted_attempt attempt_that_counts(std::span<run_folder const> parts, case_id const& id, std::int64_t world);

/// Takes away a rank's results of a case that are older than `attempt`. What cannot be removed stays, and does not
/// count.
void remove_older_results(run_folder const& folder, case_id const& id, std::int64_t rank, std::int64_t attempt);

/// run.json. Writing throws std::system_error; reading throws format_error, a newer major version included.
void write_run_info(run_folder const& folder, run_info const& info);
run_info read_run_info(run_folder const& folder);

/// Writes down a run that begins: job.json, for people and for another run, and run.json, after which the folder is
/// that of a run. Throws std::system_error.
void write_down(run_folder const& folder, run_info const& info);

/// outcome.json. Nothing when it is not there: the run was killed, or still runs.
void write_outcome(run_folder const& folder, run_outcome const& outcome);
std::optional<run_outcome> read_outcome(run_folder const& folder);

/// Points the symbolic link `latest` beside the folder at it, in one step. Does nothing when `latest` is
/// there and is not a symbolic link. Throws std::system_error.
void point_latest_at(run_folder const& folder);

} // namespace plateau
