// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/fabric.hpp"
#include "worker/fabric/fabric.hpp"
#include "worker/fabric/fabric_device.hpp"
#include "worker/fabric/nccl_library.hpp"

#include <chrono>
#include <cstdint>
#include <span>

namespace plateau {

/// Checks the fabric as one rank of all, which have to call this at the same time: finds the others, sums buffers of
/// each size over all ranks, compares every value of the sums with what it has to be, and takes the times and the
/// memory in use. All of it within `allowed`. Throws nothing: what goes wrong is the result's `failure`. `sizes` are
/// multiples of four bytes, at most what the buffers of `gpu` hold.
fabric_result check_fabric(nccl_library const& nccl, fabric_device& gpu, fabric_place const& place,
                           std::span<std::int64_t const> sizes, std::chrono::duration<double> allowed);

} // namespace plateau
