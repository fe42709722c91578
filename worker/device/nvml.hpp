// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/gpu_state.hpp"

#include <memory>
#include <optional>
#include <string>

namespace plateau {

/// One GPU as NVIDIA's management library (NVML) sees it: what happens around the worker, which CUDA does not tell.
///
/// The library comes with the driver, not with Torch, so it is loaded when a GPU is opened, by the loader's own search
/// for libnvidia-ml.so.1, and never unloaded. Its header is not needed: the few types and numbers that are used are
/// those of nvml.h (NVML API Reference, https://docs.nvidia.com/deploy/nvml-api/), which only ever adds to them.
class nvml_gpu {
public:
  virtual ~nvml_gpu() = default;

  /// Takes milliseconds and no device memory. Never throws for what this driver or GPU does not tell: that is absent.
  ///
  /// A process counts as another one by its id. Where the list of processes lacks the worker itself, as in a container
  /// that has process ids of its own, nobody can be told apart and `others` is absent.
  virtual gpu_state read() const = 0;

  virtual std::optional<bool> is_mig() const = 0; ///< whether it is a part of a GPU in MIG mode
  virtual std::string library_version() const = 0;
  virtual std::string driver_version() const = 0;
};

/// Either the GPU, or why NVML tells nothing of it.
struct opened_nvml {
  std::unique_ptr<nvml_gpu> gpu;
  std::string why_not;
};

/// `uuid`: as CUDA tells it, "GPU-" and hexadecimal; a part of a GPU is found under "MIG-" and the same. A MIG part has
/// the clocks, the power and the temperature of its whole GPU.
opened_nvml open_nvml(std::string const& uuid);

} // namespace plateau
