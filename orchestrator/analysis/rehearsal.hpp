// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <array>
#include <string_view>

namespace plateau {

/// What the pretend GPU cannot know, in words; docs/rehearsal.md says more of each.
inline constexpr std::array unknown_in_a_rehearsal{
    std::string_view("memory of the CUDA context, of loaded kernels and of library handles: hundreds of MiB of the "
                     "device, outside of the allocator"),
    std::string_view("NCCL's buffers"),
    std::string_view("kernels that allocate by the values that they compute"),
    std::string_view("whether the outputs are right: nothing is computed"),
    std::string_view("any time, and what depends on it: latency, throughput, stragglers"),
};

/// Why a check of times is not made of a rehearsal.
inline constexpr auto no_times_in_a_rehearsal = "a rehearsal has no latency: the GPU is only pretended";

/// The summary's `rehearsal`: null, or the GPU and what is not known of it.
json rehearsal_entry(run_info const& info);

} // namespace plateau
