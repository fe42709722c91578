// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace plateau {

/// What a worker says of the device that it owns.
struct device_info {
  std::string kind;                              ///< "cpu" or "cuda"
  std::string name;                              ///< as its maker calls it
  std::optional<std::int64_t> index;             ///< CUDA: among the visible devices
  std::optional<std::string> uuid;               ///< CUDA
  std::optional<std::string> pci_bus_id;         ///< CUDA
  std::optional<std::string> compute_capability; ///< CUDA, "9.0"
  std::int64_t memory_bytes = 0;                 ///< CPU: the machine's
  std::int64_t visible_devices = 0;              ///< CUDA devices that the worker could have taken
  std::string cpu_set;                           ///< CPUs the worker may run on, as in "0-3,8"
  std::int64_t cpus = 0;                         ///< how many those are
  std::map<std::string, std::string> versions;   ///< of torch, CUDA, the driver, ...
  /// CUDA: what is in effect of the allocator, the libraries' workspaces and the wait policy, asked of them and not of
  /// the environment.
  std::optional<std::map<std::string, std::string>> settings = {};
  std::optional<bool> pretended = {};               ///< CUDA: whether this is the pretend GPU, which computes nothing
  std::optional<std::string> visible_list = {};     ///< CUDA: CUDA_VISIBLE_DEVICES, where it is set
  std::optional<std::int64_t> multiprocessors = {}; ///< CUDA; absent, too, where a pretend GPU's were not said
  std::optional<bool> mig = {};                     ///< CUDA: a part of a GPU; absent where NVML does not tell
  std::optional<std::string> sensors_unavailable = {}; ///< CUDA: why NVML tells nothing of it, if so

  template <class Visit>
  friend void describe(device_info& x, Visit&& visit) {
    visit("kind", x.kind);
    visit("name", x.name);
    visit("index", x.index);
    visit("uuid", x.uuid);
    visit("pci_bus_id", x.pci_bus_id);
    visit("compute_capability", x.compute_capability);
    visit("memory_bytes", x.memory_bytes);
    visit("visible_devices", x.visible_devices);
    visit("cpu_set", x.cpu_set);
    visit("cpus", x.cpus);
    visit("versions", x.versions);
    visit("settings", x.settings);
    visit("pretended", x.pretended);
    visit("visible_list", x.visible_list);
    visit("mig", x.mig);
    visit("sensors_unavailable", x.sensors_unavailable);
    visit("multiprocessors", x.multiprocessors);
  }
};

} // namespace plateau
