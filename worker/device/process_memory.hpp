// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plateau {

/// This process's memory as the kernel counts it, in bytes; within a few pages for each thread.
struct process_memory {
  std::int64_t resident_bytes = 0;  ///< VmRSS: all that is in RAM
  std::int64_t anonymous_bytes = 0; ///< RssAnon: of that, what belongs to no file
};

/// Reads /proc/self/status; allocates nothing. Throws std::runtime_error when it cannot be read.
process_memory read_process_memory();

} // namespace plateau
