// SPDX-License-Identifier: Apache-2.0
#include "worker/device/choose_gpu.hpp"

#include "schemas/error.hpp"

namespace plateau {

namespace {

std::string counted(std::int64_t n, std::string const& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string list_of(gpu_choice const& from) {
  return from.visible_list.empty() ? "CUDA_VISIBLE_DEVICES is not set" : "CUDA_VISIBLE_DEVICES=" + from.visible_list;
}

std::string uuids_of(gpu_choice const& from) {
  std::string all;
  for (auto const& uuid : from.visible) all += (all.empty() ? "" : ", ") + uuid;
  return all;
}

} // namespace

int choose_gpu(gpu_choice const& from) {
  auto const devices = static_cast<std::int64_t>(from.visible.size());
  if (devices == 0)
    throw input_error("no CUDA device is visible on " + from.host + " (" + list_of(from) +
                      (from.cuda_says.empty() ? "" : "; CUDA says: " + from.cuda_says) +
                      "); check the driver with nvidia-smi, or use \"device\": \"cpu\"");
  if (devices == 1) return 0;
  if (from.local_size > devices)
    throw input_error(counted(from.local_size, "rank") + " on " + from.host + " see " +
                      counted(devices, "CUDA device") + " (" + list_of(from) + ": " + uuids_of(from) +
                      "); start at most one rank for each device, or show each rank one device");
  return static_cast<int>(from.local_rank);
}

} // namespace plateau
