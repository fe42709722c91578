// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct CUstream_st; ///< what cudaStream_t points to

namespace plateau {

/// All that the fabric check needs of a GPU: two buffers, a stream, and how much memory is in use. It is the calling
/// thread's device from the first call on; one thread only. Each function throws std::runtime_error with the device's
/// own words when it fails.
class fabric_device {
public:
  virtual ~fabric_device() = default;

  /// Buffers of as many floats as was asked for: what this rank contributes, and the sum over all ranks. Not from
  /// Torch's allocator.
  virtual float* contribution() = 0;
  virtual float* sum() = 0;

  virtual void set_contribution(std::span<float const> values) = 0; ///< from the buffer's beginning; done on return
  virtual void clear_sum() = 0;                                     ///< to NaN, all of it; done on return
  virtual void get_sum(std::span<float> values) = 0;                ///< from the buffer's beginning; the stream is idle

  virtual CUstream_st* stream() = 0; ///< that NCCL works on
  virtual bool idle() = 0;           ///< whether that stream has done all its work; never waits

  virtual std::int64_t used_bytes() = 0; ///< of the whole device, by all processes
};

/// CUDA's current device. Buffers of `floats` floats each come straight from cudaMalloc.
std::unique_ptr<fabric_device> open_cuda_fabric_device(std::size_t floats);

} // namespace plateau
