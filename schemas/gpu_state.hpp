// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plateau {

/// A process that has memory on a GPU.
struct gpu_process {
  std::int64_t pid = 0;              ///< as NVML has it: of the host, where it runs in a container
  std::optional<std::int64_t> bytes; ///< absent where NVML does not tell

  template <class Visit>
  friend void describe(gpu_process& x, Visit&& visit) {
    visit("pid", x.pid);
    visit("bytes", x.bytes);
  }
};

/// How long a GPU's clocks were held down, since its driver was loaded.
struct held_down {
  std::string by; ///< "power", "thermal", "board_limit", "reliability"
  std::int64_t nanoseconds = 0;

  template <class Visit>
  friend void describe(held_down& x, Visit&& visit) {
    visit("by", x.by);
    visit("nanoseconds", x.nanoseconds);
  }
};

/// What NVML says of a GPU at one moment. What it does not tell there is absent.
struct gpu_state {
  std::optional<std::int64_t> sm_clock_mhz, memory_clock_mhz, power_mw, temperature_c;
  /// Why the clocks are not higher at this moment: "gpu_idle", "sw_power_cap", ... (nvmlClocksEventReasons).
  std::optional<std::vector<std::string>> clock_reasons;
  std::vector<held_down> held_down_by;            ///< only what is counted on this GPU
  std::optional<std::vector<gpu_process>> others; ///< all but the worker's own; absent where that one is not told apart

  template <class Visit>
  friend void describe(gpu_state& x, Visit&& visit) {
    visit("sm_clock_mhz", x.sm_clock_mhz);
    visit("memory_clock_mhz", x.memory_clock_mhz);
    visit("power_mw", x.power_mw);
    visit("temperature_c", x.temperature_c);
    visit("clock_reasons", x.clock_reasons);
    visit("held_down", x.held_down_by);
    visit("other_processes", x.others);
  }
};

/// The GPU at a case's quiet points.
struct gpu_course {
  gpu_state before, after;             ///< the timed window
  std::optional<gpu_state> after_soak; ///< absent without a soak

  template <class Visit>
  friend void describe(gpu_course& x, Visit&& visit) {
    visit("before", x.before);
    visit("after", x.after);
    visit("after_soak", x.after_soak);
  }
};

} // namespace plateau
