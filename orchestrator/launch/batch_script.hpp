// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// All that a batch script for Slurm is made of. Paths are absolute; texts as the user gave them.
struct batch_request {
  std::string name; ///< of the job: only letters, digits, '_', '-' and '.'
  std::int64_t nodes = 1;
  std::int64_t tasks_per_node = 1; ///< ranks, that is
  std::int64_t gpus_per_node = 0;  ///< 0: the script asks for none
  std::optional<std::int64_t> cpus_per_task;
  std::optional<std::string> partition, time, account, constraint, qos, array;
  std::int64_t warning_seconds = 120;    ///< before the time limit: when the run is told to stop
  bool share_nodes = false;              ///< with other jobs; else the script asks for whole nodes
  std::vector<std::string> sbatch;       ///< further options of sbatch, one a word: "--comment=for the report"
  std::string site;                      ///< the text of the user's site file: #SBATCH lines, shell lines, in any order
  std::string plateau, job_file, folder; ///< the program, the job, and where the run folders go
  std::vector<std::string> run_flags;    ///< further arguments of `plateau run`
  std::vector<std::string> resume_flags; ///< the same, where it resumes
};

/// The script that `sbatch` is given: slurm/job.sh.in, filled in. The site file's #SBATCH lines come first and the
/// request's `sbatch` options last; of two that say the same, Slurm takes the later one. What is put into the script
/// cannot end a quotation or a line there. Throws input_error for a request that Slurm could not grant, and for a value
/// that does not fit into a line of the script.
std::string batch_script(batch_request const& request);

/// Where the job's run will be; of an array, where its tasks' runs will be, as a pattern for the shell.
std::string batch_run_folder(batch_request const& request, std::string const& job_id);

/// The file that gets the job's output; of an array likewise.
std::string batch_output(batch_request const& request, std::string const& job_id);

} // namespace plateau
