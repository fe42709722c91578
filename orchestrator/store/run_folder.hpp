// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_id.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
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
  std::filesystem::path raw_result(case_id const& id,
                                   std::int64_t rank) const; ///< cases/eager.c4/rank-00003.cbor
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

/// run.json. Writing throws std::system_error; reading throws format_error, a newer major version included.
void write_run_info(run_folder const& folder, run_info const& info);
run_info read_run_info(run_folder const& folder);

/// outcome.json. Nothing when it is not there: the run was killed, or still runs.
void write_outcome(run_folder const& folder, run_outcome const& outcome);
std::optional<run_outcome> read_outcome(run_folder const& folder);

/// Points the symbolic link `latest` beside the folder at it, in one step. Does nothing when `latest` is
/// there and is not a symbolic link. Throws std::system_error.
void point_latest_at(run_folder const& folder);

} // namespace plateau
