// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace plateau {

/// CPUs that a process may run on.
struct cpu_set {
  std::string text; ///< as in "0-3,8"
  std::int64_t count = 0;
};

/// Of the calling process; inherited by the processes that it starts.
cpu_set allowed_cpus();

/// The name of this host, and one that tells hosts of equal names apart: with its boot id.
std::string host_name();
std::string host_id();

/// Now, in UTC; by default as RFC 3339: "2026-03-04T10:15:00Z".
std::string utc_now(char const* format = "%Y-%m-%dT%H:%M:%SZ");

} // namespace plateau
