// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plateau {

/// What the choice of a GPU depends on, and what a message about it needs.
struct gpu_choice {
  std::vector<std::string> visible; ///< UUIDs of the visible devices, by index
  std::int64_t local_rank = 0, local_size = 1;
  std::string host;
  std::string visible_list; ///< CUDA_VISIBLE_DEVICES as it is set; empty: it is not
  std::string cuda_says;    ///< of there being no device, if it says anything
};

/// Which of the visible devices the local rank takes. A launcher that shows each rank one device has chosen: that one.
/// Else every rank sees the same devices and takes the one of its own number. Throws input_error, naming host, devices
/// and CUDA_VISIBLE_DEVICES, when there is no device, or fewer than ranks.
int choose_gpu(gpu_choice const& from);

} // namespace plateau
