// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

namespace plateau {

/// What a worker is doing. A rank's deadline for its worker depends on it.
enum class phase : std::uint32_t {
  starting,        ///< loading libraries, opening the device
  idle,            ///< waiting for a command
  compiling,       ///< compiling a package, or waiting for another worker of this node that compiles it
  preparing,       ///< weights, inputs, the mode, the output check
  warming_up,      ///< untimed requests
  waiting,         ///< ready, at the gate
  keeping_clocks,  ///< the same on CUDA: untimed requests until the rank says what is next
  timed,           ///< the timed requests
  soaking,         ///< the memory phase
  finishing,       ///< second output check, sending the result
  checking_fabric, ///< NCCL, before the first case
};

constexpr auto names(phase) {
  return std::array{std::pair{phase::starting, "starting"},
                    std::pair{phase::idle, "idle"},
                    std::pair{phase::compiling, "compiling"},
                    std::pair{phase::preparing, "preparing"},
                    std::pair{phase::warming_up, "warming up"},
                    std::pair{phase::waiting, "waiting"},
                    std::pair{phase::keeping_clocks, "keeping the clocks up"},
                    std::pair{phase::timed, "timed"},
                    std::pair{phase::soaking, "soaking"},
                    std::pair{phase::finishing, "finishing"},
                    std::pair{phase::checking_fabric, "checking the fabric"}};
}

/// Shared memory between a rank and its worker: the worker stores, the rank looks, nobody waits. A mapping of
/// zeros is a valid one. The rank creates it as a memory file; the worker inherits its descriptor.
struct progress {
  static constexpr std::size_t max_threads = 1024;
  struct alignas(64) slot {
    std::atomic<std::int64_t> requests; ///< completed by this stream thread since its worker began
    std::atomic<bool> serving;          ///< it is within a window and has yet to finish its share of it
  };

  std::atomic<phase> now;
  std::atomic<std::uint32_t> soak_window; ///< completed soak windows of the current case
  std::array<slot, max_threads> threads;
};
static_assert(std::atomic<phase>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

} // namespace plateau
