// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/injection.hpp"
#include "worker/device/device.hpp"
#include "worker/load/request.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace plateau {

/// What a planted fault does, on one stream thread.
class planted_fault {
public:
  virtual ~planted_fault() = default;
  /// Called by the stream thread when a request's result is ready, its latency still running. `served`: its requests
  /// before this one since the fault's `after`; `begin_ns`: CLOCK_MONOTONIC at its submission.
  virtual void strike(std::int64_t served, std::int64_t begin_ns) = 0;
};

/// What `planted` is to do on a stream thread; null: nothing on this one.
std::unique_ptr<planted_fault> make_fault(injection const& planted, std::size_t thread, device const& dev);

/// A stream thread's request with a planted fault in it. Made only where one is planted, so that nothing is paid
/// elsewhere. What the fault keeps lives as long as this.
class faulty_request final : public request {
public:
  /// `inner` outlives this.
  faulty_request(request& inner, std::unique_ptr<planted_fault> fault, std::int64_t after);

  void submit() override;
  void wait() override;
  void drop() override { inner_.drop(); }

  void arm(bool armed) { armed_ = armed; } ///< the fault sleeps until armed; between two windows only

private:
  request& inner_;
  std::unique_ptr<planted_fault> fault_;
  std::int64_t after_;
  bool armed_ = false;
  std::int64_t served_ = 0; // while armed
  std::int64_t begin_ns_ = 0;
};

} // namespace plateau
