// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"
#include "worker/fabric/fabric.hpp"

namespace plateau {

namespace {

[[noreturn]] void refuse() {
  throw input_error(
      "this build of plateau-worker has no CUDA, so there is no fabric to check; use \"fabric\": \"off\"");
}

} // namespace

nccl_info open_fabric(bool) { refuse(); }
fabric_result check_fabric(fabric_place const&, std::chrono::duration<double>) { refuse(); }

} // namespace plateau
