// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"

#include <cstdint>
#include <iosfwd>
#include <vector>

/// Allocation traces, replayed by plateau's CPU allocator and by PyTorch's CUDACachingAllocator, step by
/// step.
namespace plateau::trace {

enum class action : char { allocate = 'a', free = 'f', empty_cache = 'e', reset_peak = 'r' };

struct step {
  action what = action::allocate;
  std::int64_t block = 0;  ///< allocate, free: which; freeing one whose allocation failed does nothing
  std::int64_t bytes = 0;  ///< allocate
  std::int64_t stream = 0; ///< allocate; 0 is the default stream
};

void write(std::vector<step> const& steps, std::ostream& out);
std::vector<step> read(std::istream& in);

/// The counters after each step, one line a step, in the order of counter_fields.
void write(counters const& after, std::ostream& out);
std::vector<counters> read_counters(std::istream& in);

/// `count` random steps on three streams: sizes around every limit of the allocator's rules, a flush or a
/// reset of the peak now and then. Live blocks are kept below `most_live_bytes` or thereabouts.
std::vector<step> random_steps(std::uint32_t seed, std::size_t count, std::int64_t most_live_bytes);

} // namespace plateau::trace
