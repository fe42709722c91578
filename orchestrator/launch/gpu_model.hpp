// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plateau {

/// What a rehearsal, or compiling ahead of time, has to know of a GPU.
struct gpu_model {
  std::string name;
  int major = 0, minor = 0;         ///< compute capability
  std::int64_t memory_bytes = 0;    ///< as CUDA reports it: less than what the product's name says
  std::int64_t multiprocessors = 0; ///< the compiler chooses kernels by it; 0: not said

  /// "NVIDIA H200 (sm_90, 139.8 GiB, 132 SMs)"
  std::string text() const;
  /// What parse_gpu reads back: "h200", or "sm=9.0,memory=8192MiB,sms=132".
  std::string spec() const;
};

/// A GPU by its short name, "h200".
struct known_gpu {
  std::string_view alias;
  gpu_model model;
};

/// The GPUs that are known by name. Compute capability and multiprocessors are NVIDIA's published ones; the memory is
/// about what PyTorch's out-of-memory messages give as the total on such a GPU, which differs by some hundred MiB with
/// the driver and with ECC: who has the GPU says it exactly, with memory=.
std::span<known_gpu const> known_gpus();
std::string gpu_names(); ///< "b200, h200, ..."

/// Reads "h200", or "sm=9.0,memory=141GiB" with sms=132 if it is to be known. Throws input_error.
gpu_model parse_gpu(std::string_view text);

} // namespace plateau
