// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"
#include "schemas/codec.hpp"
#include "schemas/device.hpp"
#include "schemas/fabric.hpp"
#include "schemas/job.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

inline constexpr format_version run_info_format{"plateau.run", 1, 1};
inline constexpr format_version run_outcome_format{"plateau.outcome", 1, 0};

/// One rank of a run: where it ran and on what.
struct rank_info {
  std::int64_t rank = 0;
  std::string host;    ///< its name
  std::string host_id; ///< name and boot id: tells hosts of one name apart
  std::int64_t local_rank = 0, local_size = 1;
  std::string cpu_set;               ///< CPUs that the rank may run on, as in "0-3,8"
  std::optional<device_info> device; ///< absent when its first worker did not come up

  template <class Visit>
  friend void describe(rank_info& x, Visit&& visit) {
    visit("rank", x.rank);
    visit("host", x.host);
    visit("host_id", x.host_id);
    visit("local_rank", x.local_rank);
    visit("local_size", x.local_size);
    visit("cpu_set", x.cpu_set);
    visit("device", x.device);
  }
};

/// Checks whose findings make a run bad: exit code 4. They are described in orchestrator/analysis/finding.hpp.
struct gates {
  std::vector<std::string> checks;
  bool strict = false; ///< a check that could not be made on a measured case fails, too

  template <class Visit>
  friend void describe(gates& x, Visit&& visit) {
    visit("checks", x.checks);
    visit("strict", x.strict);
  }
};

/// What is known of a run from its start: the run folder's run.json, written by rank 0 before the first case,
/// so that whatever a killed run left can still be read and what is missing be named.
struct run_info {
  std::string schema = run_info_format.text();
  std::string run_id;
  std::string started;  ///< UTC, RFC 3339
  std::string launcher; ///< "mpirun", "srun", or "external" when the user started the ranks
  std::vector<std::string> command_line;
  std::map<std::string, std::string> versions; ///< of plateau, MPI, HDF5, the kernel
  json job;                                    ///< effective: every field, the device and dtype resolved
  std::vector<rank_info> ranks;                ///< all of the world, in order
  std::vector<std::string> warnings;
  gates fail_on;
  std::optional<fabric_record> fabric; ///< absent in runs older than the check
  /// The GPU that was only pretended, in words: memory is what it would be on it, and times mean nothing. Absent: the
  /// run is no rehearsal.
  std::optional<std::string> rehearsed;

  template <class Visit>
  friend void describe(run_info& x, Visit&& visit) {
    visit("schema", x.schema);
    visit("run_id", x.run_id);
    visit("started", x.started);
    visit("launcher", x.launcher);
    visit("command_line", x.command_line);
    visit("versions", x.versions);
    visit("job", x.job);
    visit("ranks", x.ranks);
    visit("warnings", x.warnings);
    visit("fail_on", x.fail_on);
    visit("fabric", x.fabric);
    visit("rehearsed", x.rehearsed);
  }
};

/// All ranks' results of one case. A rank whose result is absent is missing.
struct case_record {
  case_id id;
  std::vector<std::optional<case_result>> by_rank; ///< one place for each rank of the world
};

/// How a run ended: the run folder's outcome.json, written last by rank 0. Absent in the folder of a killed
/// run.
struct run_outcome {
  std::int64_t exit_code = 0;
  std::string reason;   ///< in words, when the run is not complete
  std::string finished; ///< UTC, RFC 3339
  std::string schema = run_outcome_format.text();

  template <class Visit>
  friend void describe(run_outcome& x, Visit&& visit) {
    visit("schema", x.schema);
    visit("exit_code", x.exit_code);
    visit("reason", x.reason);
    visit("finished", x.finished);
  }
};

/// A whole run. `cases` has one record for each point of the job's grid, in its order.
struct run_record {
  run_info info;
  job run; ///< info.job, read
  std::vector<case_record> cases;
  std::optional<run_outcome> outcome;
};

} // namespace plateau
