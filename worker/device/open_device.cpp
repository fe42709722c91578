// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"
#include "worker/device/device.hpp"

namespace plateau {

opened_device open_device(device_request const& request) {
  auto const& wanted = request.wanted;
  if (wanted != "cpu" && wanted != "cuda" && wanted != "auto")
    throw input_error("\"" + wanted + "\" is no device; use auto, cuda or cpu");
  if (wanted == "cuda" || (wanted == "auto" && visible_gpus() > 0)) return {open_cuda(request), {}};
  return {open_cpu(), {}};
}

} // namespace plateau
