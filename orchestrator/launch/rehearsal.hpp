// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/launch/context.hpp"
#include "orchestrator/launch/gpu_model.hpp"
#include "schemas/job.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace plateau {

/// A run whose workers meet a GPU that is only pretended (worker/pretend_gpu): Torch's memory management is real, and
/// nothing is computed.
struct rehearsal {
  gpu_model gpu;
  std::filesystem::path libraries; ///< the folder of the pretend GPU's
};

/// The environment in which a worker meets `devices` such GPUs, in the place of all that the machine has. What `env`
/// preloads already stays.
environment with_pretend_gpu(environment env, rehearsal const& r, std::int64_t devices);

/// The job as it is rehearsed: on CUDA, and each case once, since repeats differ only in time. Throws input_error when
/// the job is for the CPU.
job job_to_rehearse(job j);

/// The GPU that these ranks' workers only met as a pretended one, in words: "NVIDIA H200 (sm_90, 139.8 GiB, 132 SMs)".
/// without the SMs where nobody said how many it has. Nothing when there is none.
std::optional<std::string> pretended_gpu(std::span<rank_info const> ranks);

} // namespace plateau
