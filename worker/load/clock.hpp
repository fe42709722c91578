// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace plateau {

/// CLOCK_MONOTONIC in nanoseconds: the only clock of a measurement. Comparable between the processes of one host.
inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

} // namespace plateau
