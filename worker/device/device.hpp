// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"
#include "schemas/device.hpp"

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// The order in which one stream thread's work runs on the device, and the allocator's view of that thread.
class stream {
public:
  virtual ~stream() = default;
  virtual void enter() = 0; ///< makes this stream current for the calling thread, until it enters another
  virtual void wait() = 0;  ///< returns when all work submitted to this stream is done
};

/// The one device that a worker owns. Everything that differs between CPU and CUDA is behind this interface. Outlives
/// its streams.
class device {
public:
  virtual ~device() = default;
  virtual device_info info() const = 0;
  virtual c10::Device torch_device() const = 0;
  virtual std::unique_ptr<stream> make_stream() = 0; ///< a stream of its own, however many there are
  virtual void wait_idle() = 0;                      ///< returns when the device has nothing left to do

  /// The measured allocator; read at quiet points only.
  virtual counters read_counters() const = 0;
  virtual void reset_peak() = 0; ///< peak_allocated_bytes starts again from what is allocated now
  virtual std::optional<std::string> counters_unavailable() const = 0; ///< why the counters cannot tell, if so

  /// Device memory in use that the allocator does not know of. CPU: anonymous resident memory minus reserved bytes.
  virtual std::int64_t outside_bytes() const = 0;
};

/// The CPU, its caching allocator installed as Torch's. Call once, before the first tensor is made. The first stream
/// made is number 0, on which every thread begins.
std::unique_ptr<device> open_cpu();

/// A device, and what a user should know of the choice.
struct opened_device {
  std::unique_ptr<device> dev;
  std::vector<std::string> warnings;
};

/// What a job's `device` names: "cpu", "cuda" or "auto". Throws input_error when this build or machine has none such.
opened_device open_device(std::string_view wanted);

} // namespace plateau
