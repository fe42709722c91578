// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"
#include "schemas/device.hpp"
#include "schemas/gpu_state.hpp"

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// Work that was captured once and can be submitted again and again, to the same memory each time.
class captured_work {
public:
  virtual ~captured_work() = default;
  virtual void submit() = 0; ///< to the stream that the calling thread has entered
};

/// The order in which one stream thread's work runs on the device, and the allocator's view of that thread.
class stream {
public:
  virtual ~stream() = default;
  virtual void enter() = 0; ///< makes this stream current for the calling thread, until it enters another
  virtual void wait() = 0;  ///< returns when all work submitted to this stream is done

  /// Captures what `work` submits to this stream, which the calling thread has entered; what it allocates comes from
  /// a private pool that lives as long as the result. Nothing is computed yet. The allocator's cache is given back
  /// first, as torch.cuda.graph() does. `work` has run on this stream before, so that libraries have what they keep for
  /// it. Null where the device cannot capture: a CPU.
  virtual std::unique_ptr<captured_work> capture(std::function<void()> const& /*work*/) { return nullptr; }
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
  /// Why the counters cannot tell, if so; asked when weights are allocated.
  virtual std::optional<std::string> counters_unavailable() const = 0;

  /// Device memory in use that the allocator does not know of. CPU: anonymous resident memory minus reserved bytes.
  /// CUDA: total minus free minus reserved, other processes' memory included.
  virtual std::int64_t outside_bytes() const = 0;

  /// Whether its clocks fall when it has nothing to do, so that the first requests after a pause are slower.
  virtual bool slows_when_idle() const { return false; }
  /// What its sensors say, at a quiet point; nothing where it has none.
  virtual std::optional<gpu_state> read_sensors() const { return std::nullopt; }

  /// Why an output read back from this device means nothing, if so: it only pretends to compute.
  virtual std::optional<std::string> outputs_unavailable() const { return std::nullopt; }

  /// Why this process can do nothing more with the device, if so: an error that stays until the process ends.
  virtual std::optional<std::string> broken() { return std::nullopt; }
};

/// The CPU, its caching allocator installed as Torch's. Call once, before the first tensor is made. The first stream
/// made is number 0, on which every thread begins.
std::unique_ptr<device> open_cpu();

/// What a worker is to open. `sync` and `allow_tf32` are the job's.
struct device_request {
  std::string wanted = "auto"; ///< "cpu", "cuda" or "auto": CUDA where there is a device
  std::int64_t local_rank = 0; ///< of the host's ranks
  std::int64_t local_size = 1; ///< how many those are
  std::string sync = "spin";
  bool allow_tf32 = false;
};

/// CUDA devices that this process sees; 0 in a build without CUDA.
int visible_gpus();

/// The local rank's CUDA device (choose_gpu.hpp), current for the calling thread, with its wait policy and TF32 set.
/// Call once, before Torch's first CUDA call. The first stream made is CUDA's default stream, on which every thread
/// begins; the next ones are Torch's own 32 as long as one of them is free, then streams made here, so that no two
/// share a queue or an allocator's cache. Throws input_error when there is no device, none for this local rank, or no
/// CUDA in this build.
std::unique_ptr<device> open_cuda(device_request const& request);

/// A device, and what a user should know of the choice.
struct opened_device {
  std::unique_ptr<device> dev;
  std::vector<std::string> warnings;
};

/// Throws input_error when this build or machine has no such device.
opened_device open_device(device_request const& request);

} // namespace plateau
