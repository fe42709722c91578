// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"

#include <string>
#include <vector>

namespace plateau {

/// Why a GPU's clocks were held down in the timed window, and for which share of it.
struct held_down_share {
  std::string by;
  double share = 0;
};

/// From the GPU's own counters, which are cumulative: their difference over the window by the window's length. One for
/// each that the GPU counts.
std::vector<held_down_share> held_down_in_window(measurement const& m);

/// What a user should know of a rank's GPU while it measured this case, in sentences: that other processes had memory
/// on it, and that its clocks were held down for at least a hundredth of the timed window. Where the GPU counts no such
/// time, that it was slowed at the end of the window has to do. Empty where NVML told nothing.
std::vector<std::string> gpu_warnings(measurement const& m);

/// The GPU at the case's quiet points, and the shares; null where NVML told nothing.
json gpu_entry(measurement const& m);

} // namespace plateau
