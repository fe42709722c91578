// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/run_record.hpp"

#include <span>
#include <string>

namespace plateau {

/// Which ranks of a host were given the same GPU, in one sentence with the GPU's UUID and each rank's
/// CUDA_VISIBLE_DEVICES; empty when each has one of its own. A host is told by `host_id`, a GPU by its UUID: a rank
/// without either shares with nobody. `ranks` is all of the world, so that every rank comes to the same answer.
std::string shared_gpus(std::span<rank_info const> ranks);

} // namespace plateau
