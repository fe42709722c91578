// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace plateau {

/// What was found out about a file or a run folder.
struct check_report {
  std::string what;                 ///< what it is, as in "a run of 2 ranks, 8 of 8 results there"
  std::vector<std::string> remarks; ///< what a reader should know, but is no fault: a sentence each
  std::vector<std::string> faults;  ///< what is wrong: a sentence each, with the path
};

/// Checks anything that plateau reads or writes: a job, a run folder, or a file of one. A file is taken for what has
/// its name, or its extension, in a run folder; a JSON file of another name for what its "schema" says, else for a job.
/// Throws input_error when there is no such file or run folder; what is wrong in one is a fault.
check_report check_stored(std::filesystem::path const& path);

} // namespace plateau
