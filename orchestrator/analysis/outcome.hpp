// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/run_record.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace plateau {

/// plateau's exit codes. The first of 2, 75, 3, 4 that applies.
enum class exit_code : int {
  good = 0,
  bad_input = 2,   ///< bad usage or input; nothing was measured
  not_passed = 3,  ///< some cases did not pass; skipped ones do not count
  gate_failed = 4, ///< every case passed, but a finding is not wanted: see gates.hpp
  incomplete = 75, ///< something is missing
};

/// "rank 1", "ranks 1-3,5". Ascending, at least one.
std::string rank_list(std::span<std::int64_t const> ranks);

/// A rank's status of a case, and the reason in words: missing when there is no result.
case_status status_on(std::optional<case_result> const& result);
std::string reason_on(std::optional<case_result> const& result);

/// What became of a case on all ranks together.
struct case_verdict {
  case_status status = case_status::missing; ///< passed only if every rank passed; else the gravest
  std::string reason;                        ///< in words, with the ranks that it is about; empty when passed
};
case_verdict verdict_of(case_record const& record);

/// What the run's cases alone say of its exit code: good, not_passed or incomplete.
exit_code exit_code_of(run_record const& record);

} // namespace plateau
