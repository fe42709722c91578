// SPDX-License-Identifier: Apache-2.0
// Stands in for cuda.cpp in a build without CUDA.
#include "schemas/error.hpp"
#include "worker/device/device.hpp"

namespace plateau {

int visible_gpus() { return 0; }

std::unique_ptr<device> open_cuda(device_request const&) {
  throw input_error(
      "this plateau-worker was built without CUDA; use \"device\": \"cpu\", or build it with a torch that "
      "has CUDA and PLATEAU_CUDA=ON");
}

} // namespace plateau
