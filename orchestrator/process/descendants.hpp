// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <sys/types.h>
#include <vector>

namespace plateau {

/// The processes that descend from this one, from its construction on, those included whose parents have died: they
/// become this process's children (PR_SET_CHILD_SUBREAPER) wherever they went, into another process group or session
/// too. Children that this process had before are none of its concern. Linux only, as /proc is.
class descendants {
public:
  descendants();

  /// Waits until none of them lives; kills those that are there after `patience`. Gives up on one that does not die
  /// within some seconds of that: the kernel holds it.
  void outlive(std::chrono::milliseconds patience) const;

private:
  std::vector<pid_t> others_; // ascending
};

} // namespace plateau
