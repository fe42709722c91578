// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/fabric.hpp"
#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plateau {

/// Why these ranks have no fabric that could be checked, in words; nothing when they have one: at least two ranks, each
/// with a GPU that is real and its own.
std::string why_no_fabric(std::span<rank_info const> ranks);

/// What the check came to, from what all ranks found: passed, or failed with a reason that names the ranks and their
/// hosts, the NCCL settings in effect, and what to look at. Ranks with different versions of NCCL fail.
fabric_record judge_fabric(std::vector<fabric_on_rank> ranks);

/// Bandwidths of an all-reduce in GB/s (1e9 bytes per second), as nccl-tests defines them (its doc/PERFORMANCE.md):
/// algbw = S / t, S being the bytes of one rank's buffer and t the time of one all-reduce;
/// busbw = algbw * 2 (n - 1) / n over n ranks. So much of each rank's buffer has to cross its link whatever the
/// algorithm: busbw can be held against the peak of the hardware, and does not depend on n.
struct bandwidth {
  double algorithm = 0, bus = 0;
};

/// Nothing when there is no time, or one rank alone, of which no byte crosses a link.
std::optional<bandwidth> bandwidth_of(all_reduce_timing const& timing, std::int64_t ranks);

/// What the check found, over all ranks.
struct fabric_totals {
  struct size {
    std::int64_t bytes = 0;
    bandwidth slowest;     ///< that of the slowest rank
    std::int64_t rank = 0; ///< which one that is
  };
  std::vector<size> sizes;                ///< that every rank has finished
  std::optional<std::int64_t> nccl_bytes; ///< device memory that NCCL takes, on the rank where it is most
};
fabric_totals totals_of(fabric_record const& record);

/// The check in a line for people: "fabric: NCCL 2.28.9, all-reduce of 128 MiB at 312.4 GB/s bus bandwidth, ...".
std::string told(fabric_record const& record);

/// The key `fabric` of summary.json.
json fabric_entry(fabric_record const& record);

} // namespace plateau
