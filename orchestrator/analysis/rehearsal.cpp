// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/rehearsal.hpp"

namespace plateau {

json rehearsal_entry(run_info const& info) {
  if (!info.rehearsed) return nullptr;
  return {{"gpu", *info.rehearsed}, {"cannot_know", unknown_in_a_rehearsal}};
}

} // namespace plateau
