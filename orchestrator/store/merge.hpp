// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/run_folder.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace plateau {

struct merge_request {
  std::vector<std::filesystem::path> runs; ///< run folders, or files in them, in any order; at least one
  std::filesystem::path to;                ///< of the merged run; must not exist, or be empty
  std::vector<std::string> command_line;
};

struct merged {
  run_folder folder;
  std::vector<std::string> complaints; ///< results that were left out since they cannot be read: a sentence each
  std::vector<std::string> notes;      ///< what was passed over; what is not the same in all runs, and did not matter
};

/// Makes one run of several: raw results, run.json and job.json, of which assemble() makes the rest.
///
/// - Folders of one run (of one run id) are its parts, as nodes without a common file system keep them. They are joined
///   rank by rank; a result that several hold is taken once. Copies that were resumed apart are refused.
/// - Different runs are put one after the other in the order in which they were started, whatever the order of `runs`;
///   their ranks are numbered anew, and each keeps where it was and which run and rank it comes from. A merged run
///   among them brings its own runs along. Nothing is told of a GPU that is in several runs: each run has it once.
/// - All have the same job, but for its name, random_seed, timeouts_s and fabric, of which those of the first count.
///   The gates of all are gates of the merged run, strict if those of any run are; no checks are no gates.
/// - Runs may be incomplete. What is missing there is missing here. A run that still goes on is refused.
/// - Regular files with names in .out are passed over: what the tasks of a job array print lies beside their runs.
///
/// Holds one rank's result of one case at a time. run.json is written last, so that what a killed merge leaves is no
/// run. Throws input_error when a run is given twice, is damaged, or has another job, with all differences;
/// std::system_error when the folder cannot be written: then nothing of it is left.
merged merge_runs(merge_request const& request);

} // namespace plateau
