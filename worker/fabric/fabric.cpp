// SPDX-License-Identifier: Apache-2.0
#include "worker/fabric/fabric.hpp"

#include "worker/fabric/check.hpp"

#include <algorithm>
#include <exception>

namespace plateau {

namespace {

// The first is small, so that what NCCL takes for its first collective is not mistaken for what a large one takes.
constexpr std::int64_t sizes[] = {64 << 10, 4 << 20, 128 << 20};

} // namespace

nccl_info open_fabric(bool with_unique_id) { return info_of(load_nccl(), with_unique_id); }

fabric_result check_fabric(fabric_place const& place, std::chrono::duration<double> allowed) try {
  auto const gpu = open_cuda_fabric_device(static_cast<std::size_t>(std::ranges::max(sizes)) / sizeof(float));
  return check_fabric(load_nccl(), *gpu, place, sizes, allowed);
} catch (std::exception const& e) {
  fabric_result result;
  result.failure = fabric_failure{fabric_step::loading, e.what()};
  return result;
}

} // namespace plateau
