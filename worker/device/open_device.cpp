// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"
#include "worker/device/device.hpp"

#include <c10/cuda/CUDAFunctions.h>

namespace plateau {

opened_device open_device(std::string_view wanted) {
  if (wanted == "cuda")
    throw input_error("this build of plateau-worker has no CUDA device yet; use \"device\": \"cpu\"");
  if (wanted != "cpu" && wanted != "auto")
    throw input_error("\"" + std::string(wanted) + "\" is no device; use auto, cuda or cpu");
  std::vector<std::string> warnings;
  if (auto const gpus = wanted == "auto" ? int{c10::cuda::device_count()} : 0; gpus > 0)
    warnings.push_back("ran on the CPU although a GPU is visible (" + std::to_string(gpus) +
                       "): this build of plateau-worker has no CUDA device yet");
  return {open_cpu(), std::move(warnings)};
}

} // namespace plateau
