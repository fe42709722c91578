// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// A run's attempts: where each rank was in each of them, and which cases can be compared with which.
namespace plateau {

rank_place place_of(rank_info const& rank);

/// The attempts of a run, from 1, in order. A run that is older than resuming had one.
std::vector<run_attempt> attempts_of(run_info const& info);

/// Where a rank of the run was in an attempt; of a merged run, in an attempt of the run that it is from. Of an attempt
/// that nothing is known of: where the rank was last.
rank_place place_at(run_info const& info, std::int64_t rank, std::int64_t attempt);

/// The attempt that measured a result; of a merged run, the attempt of the run that its rank is from.
std::int64_t attempt_of(case_result const& result);

/// Names the machine, and the time on it, in which a result was measured: equal for ranks that shared its clock and its
/// memory. In a merged run, ranks that were on one host in different runs are told apart.
std::string machine_of(run_info const& info, case_result const& result);

/// Whether two ranks had their device at the same time: of a merged run, only if they came from the same one.
bool ran_together(rank_info const& a, rank_info const& b);

/// What is not the same for a rank in two places, so that cases measured in one do not compare with those of the
/// other: "H200 GPU-1 on node1 in attempt 1, H200 GPU-7 on node2 now". Nothing when it is the same device with the same
/// libraries. A GPU is told by its UUID, a CPU by its name and that of its host: the host's boot does not matter.
std::string moved(rank_place const& before, std::string_view in_before, rank_place const& now, std::string_view in_now);

/// The ranks that moved between two attempts, a sentence for each; of many, the first few and how many more.
std::string moved_ranks(std::span<rank_place const> before, std::string_view in_before, std::span<rank_place const> now,
                        std::string_view in_now);

/// Cases of a run that do not compare with those of another attempt.
struct moved_cases {
  std::string run_id;                     ///< the run, or that one of a merged run
  std::int64_t attempt = 1, other = 2;    ///< that measured them, and the other ones
  std::vector<std::string> cases, others; ///< ids, in the order of the grid
  std::string what;                       ///< as moved_ranks() tells it
};

/// All of a run, and of each run that it is merged from: for each attempt that measured something, against the first
/// that did.
std::vector<moved_cases> moves_of(run_record const& run);

/// "eager.c1, eager.c2 (attempt 1) do not compare with arena.c1 (attempt 2): rank 0: ..."
std::string told(moved_cases const& m);

} // namespace plateau
