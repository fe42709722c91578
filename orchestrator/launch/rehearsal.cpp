// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/rehearsal.hpp"

#include "schemas/error.hpp"

#include <algorithm>
#include <cstdio>

namespace plateau {

namespace {

void put_before(std::string& list, std::string const& first) { list = first + (list.empty() ? "" : ":" + list); }

gpu_model model_of(device_info const& d) {
  gpu_model gpu{d.name, 0, 0, d.memory_bytes, d.multiprocessors.value_or(0)};
  std::sscanf(d.compute_capability.value_or("").c_str(), "%d.%d", &gpu.major, &gpu.minor);
  return gpu;
}

} // namespace

environment with_pretend_gpu(environment env, rehearsal const& r, std::int64_t devices) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  put_before(env["LD_LIBRARY_PATH"], r.libraries.string());
  put_before(env["LD_PRELOAD"], (r.libraries / "libpretend_cuda.so").string());
  env.erase("CUDA_VISIBLE_DEVICES"); // of the machine's own
  env["PRETEND_DEVICES"] = std::to_string(devices);
  env["PRETEND_NAME"] = r.gpu.name;
  env["PRETEND_MAJOR"] = std::to_string(r.gpu.major);
  env["PRETEND_MINOR"] = std::to_string(r.gpu.minor);
  env["PRETEND_MIB"] = std::to_string(r.gpu.memory_bytes / mib);
  if (r.gpu.multiprocessors > 0) env["PRETEND_SMS"] = std::to_string(r.gpu.multiprocessors);
  return env;
}

job job_to_rehearse(job j) {
  if (j.device == "cpu")
    throw input_error("the job is for the CPU (\"device\": \"cpu\"), and only a GPU is rehearsed; plateau run measures "
                      "on the CPU, --device cuda rehearses the job on the GPU");
  j.device = "cuda";
  j.repeats = 1;
  return j;
}

std::optional<std::string> pretended_gpu(std::span<rank_info const> ranks) {
  auto const pretends = [](rank_info const& r) { return r.device && r.device->pretended.value_or(false); };
  auto const found = std::ranges::find_if(ranks, pretends);
  if (found == ranks.end()) return std::nullopt;
  return model_of(*found->device).text();
}

} // namespace plateau
