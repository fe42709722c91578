// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/run_record.hpp"

#include <string>

namespace plateau {

/// plateau's exit codes. The first of 2, 75, 3, 4 that applies.
enum class exit_code : int {
  good = 0,
  bad_input = 2,   ///< bad usage or input; nothing was measured
  not_passed = 3,  ///< some cases did not pass; skipped ones do not count
  gate_failed = 4, ///< every case is there, and a gate failed
  incomplete = 75, ///< something is missing; the run can be resumed
};

/// A case over all ranks: the worst of its ranks' statuses.
case_status overall_status(case_record const& c);

/// Why it is not passed, with the ranks: "rank 1: killed by SIGSEGV ...". Empty when every rank passed.
std::string overall_reason(case_record const& c);

/// What the run's cases alone say of its exit code: good, not_passed or incomplete.
exit_code exit_code_of(run_record const& record);

} // namespace plateau
