// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// Where tensors of known lifetimes lie in one block of memory. Knows no Torch.
namespace plateau {

/// A tensor's size and the steps, both included, between which its bytes must not be touched by another.
struct lifetime {
  std::int64_t bytes = 0;
  std::size_t first_use = 0, last_use = 0;
};

/// Offsets into the block, in the order of the lifetimes, each a multiple of the alignment.
struct placement {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0; ///< the block's size
};

/// 64 bytes: a cache line, and the widest vector register.
inline constexpr std::int64_t plan_alignment = 64;

/// Greedy by size: the largest first, each in the tightest gap left by those already placed whose lifetimes
/// meet its own (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", arXiv
/// 2001.03288, section 5.2).
placement plan_offsets(std::span<lifetime const> lifetimes);

/// Two that are alive at the same step and share bytes, or nothing: then the plan is sound.
std::optional<std::pair<std::size_t, std::size_t>> find_overlap(std::span<lifetime const> lifetimes,
                                                                placement const& plan);

} // namespace plateau
