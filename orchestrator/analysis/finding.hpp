// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// What plateau looks for in a case. The names are stable: `--fail-on`, summary.json and JUnit use them.
struct check {
  std::string_view name, meaning; ///< the meaning of a finding, in words
};
namespace checks {
inline constexpr check growing{"growing", "memory grows under load on some rank"},
    inconclusive{"inconclusive", "the soak cannot tell whether memory grows"},
    churn{"churn", "there were allocations within the timed window"},
    unequal{"unequal", "ranks that did the same work have different allocator counters"},
    straggler{"straggler", "a rank is slower than the others"},
    unsteady{"unsteady", "latency drifted, or changed its level, within the timed window"},
    skipped{"skipped", "the case could not run here"};
inline constexpr std::array all{growing, inconclusive, churn, unequal, straggler, unsteady, skipped};
} // namespace checks

/// Something about a case that its user should know. The table, summary.json, JUnit and the exit code all read these.
struct finding {
  std::string_view check;          ///< the name of one of `checks`
  std::vector<std::int64_t> ranks; ///< that it is about, ascending; empty: no rank in particular
  std::string reason;              ///< one sentence, without the case's name
  json evidence;                   ///< an object: the numbers behind the reason
};

/// A check that could not be made of a measured case, and why. It has neither passed nor found anything.
struct unmade {
  std::string_view check;
  std::string reason;
};

} // namespace plateau
