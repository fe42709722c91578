// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/fabric.hpp"

#include <chrono>
#include <cstdint>
#include <string>

/// The fabric check as a worker on a GPU does it: the libnccl that the loader finds, buffers on CUDA's current device.
/// A build without CUDA throws input_error from both.
namespace plateau {

/// One rank's place in the check.
struct fabric_place {
  std::int64_t rank = 0, ranks = 1;
  std::string unique_id; ///< as rank 0's worker gave it
};

/// Loads NCCL. For rank 0 with a new unique id. Throws std::runtime_error with a reason for people.
nccl_info open_fabric(bool with_unique_id);

/// Checks the fabric together with all other ranks' workers, within `allowed`. What goes wrong is the result's
/// `failure`.
fabric_result check_fabric(fabric_place const& place, std::chrono::duration<double> allowed);

} // namespace plateau
