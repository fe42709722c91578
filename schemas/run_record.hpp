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

inline constexpr format_version run_info_format{"plateau.run", 1, 2};
inline constexpr format_version run_outcome_format{"plateau.outcome", 1, 0};

/// The rank of a run that a rank of a merged run was.
struct rank_origin {
  std::string run_id;
  std::int64_t rank = 0; ///< in that run

  template <class Visit>
  friend void describe(rank_origin& x, Visit&& visit) {
    visit("run_id", x.run_id);
    visit("rank", x.rank);
  }
  bool operator==(rank_origin const&) const = default;
};

/// One rank of a run: where it ran and on what. Of a run that was resumed: in its last attempt.
struct rank_info {
  std::int64_t rank = 0;
  std::string host;    ///< its name
  std::string host_id; ///< name and boot id: tells hosts of one name apart
  std::int64_t local_rank = 0, local_size = 1;
  std::string cpu_set;                    ///< CPUs that the rank may run on, as in "0-3,8"
  std::optional<device_info> device;      ///< absent when its first worker did not come up
  std::optional<rank_origin> origin = {}; ///< of a merged run

  template <class Visit>
  friend void describe(rank_info& x, Visit&& visit) {
    visit("rank", x.rank);
    visit("host", x.host);
    visit("host_id", x.host_id);
    visit("local_rank", x.local_rank);
    visit("local_size", x.local_size);
    visit("cpu_set", x.cpu_set);
    visit("device", x.device);
    visit("origin", x.origin);
  }
};

/// Where a rank was in one attempt: what must stay the same for its cases to be comparable.
struct rank_place {
  std::string host;
  std::string host_id;
  std::string device;                          ///< as its maker calls it; empty: its worker did not come up
  std::optional<std::string> uuid;             ///< of a GPU
  std::map<std::string, std::string> versions; ///< of the worker's libraries and the driver

  template <class Visit>
  friend void describe(rank_place& x, Visit&& visit) {
    visit("host", x.host);
    visit("host_id", x.host_id);
    visit("device", x.device);
    visit("uuid", x.uuid);
    visit("versions", x.versions);
  }
};

/// One go at a run: the first, or one that resumed it.
struct run_attempt {
  std::int64_t attempt = 1;
  std::string started;  ///< UTC, RFC 3339
  std::string launcher; ///< as in run_info
  std::vector<std::string> command_line;
  std::map<std::string, std::string> versions; ///< of plateau, MPI, the kernel
  std::vector<rank_place> places;              ///< by rank

  template <class Visit>
  friend void describe(run_attempt& x, Visit&& visit) {
    visit("attempt", x.attempt);
    visit("started", x.started);
    visit("launcher", x.launcher);
    visit("command_line", x.command_line);
    visit("versions", x.versions);
    visit("places", x.places);
  }
};

/// One of the runs that a merged run is made of. Its ranks follow each other in the merged run.
struct run_source {
  std::string run_id;
  std::int64_t first_rank = 0, ranks = 0; ///< in the merged run
  std::vector<run_attempt> attempts;
  std::vector<std::string> warnings;
  std::optional<fabric_record> fabric;

  template <class Visit>
  friend void describe(run_source& x, Visit&& visit) {
    visit("run_id", x.run_id);
    visit("first_rank", x.first_rank);
    visit("ranks", x.ranks);
    visit("attempts", x.attempts);
    visit("warnings", x.warnings);
    visit("fabric", x.fabric);
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
  /// Why this run's figures are not those of a GPU, and not to be held against another run's, if so.
  std::optional<std::string> not_comparable;
  std::optional<std::vector<run_attempt>> attempts;   ///< from 1, in order; absent in older runs and in merged ones
  std::optional<std::vector<run_source>> merged_from; ///< only of a merged run, by rank
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
    visit("not_comparable", x.not_comparable);
    visit("attempts", x.attempts);
    visit("merged_from", x.merged_from);
    visit("rehearsed", x.rehearsed);
  }
};

/// All ranks' results of one case, all of one attempt. A rank whose result is absent is missing.
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
