// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace plateau {

/// An allocator's counters at a quiet point, with the meanings of PyTorch's CUDACachingAllocator.
struct counters {
  std::int64_t allocated_bytes = 0;      ///< in live blocks
  std::int64_t reserved_bytes = 0;       ///< in segments
  std::int64_t peak_allocated_bytes = 0; ///< since the peak was last reset
  std::int64_t allocation_events = 0;    ///< allocations of more than 0 bytes so far, cache hits too
  std::int64_t segment_alloc_events = 0; ///< segments taken from the device so far
  std::int64_t free_events = 0;          ///< frees so far
  std::int64_t requested_bytes = 0;      ///< asked for by live blocks, before rounding
  std::int64_t active_blocks = 0;        ///< live blocks
  std::int64_t segments = 0;             ///< segments held
  std::int64_t inactive_split_blocks = 0;
  std::int64_t inactive_split_bytes = 0; ///< free, but in a segment that also holds live blocks
  std::int64_t device_mallocs = 0;       ///< calls that took memory from the device so far
  std::int64_t device_frees = 0;         ///< calls that gave memory back so far
  std::int64_t alloc_retries = 0;        ///< allocations that succeeded only after the cache was flushed
  std::int64_t ooms = 0;

  bool operator==(counters const&) const = default;

  template <class Visit>
  friend void describe(counters& x, Visit&& visit);
};

/// One counter: its name in every format, its unit ("bytes" or "1"), and what it counts. The order of this
/// table is the order of the `counter` dimension in run.h5.
struct counter_field {
  std::string_view name, unit;
  std::int64_t counters::*member;
  std::string_view meaning;
};

inline constexpr std::array counter_fields{
    counter_field{"allocated_bytes", "bytes", &counters::allocated_bytes, "bytes in live blocks"},
    counter_field{"reserved_bytes", "bytes", &counters::reserved_bytes, "bytes in segments"},
    counter_field{"peak_allocated_bytes", "bytes", &counters::peak_allocated_bytes,
                  "most allocated_bytes since the timed window began"},
    counter_field{"allocation_events", "1", &counters::allocation_events, "allocations so far, cache hits too"},
    counter_field{"segment_alloc_events", "1", &counters::segment_alloc_events, "segments taken so far"},
    counter_field{"free_events", "1", &counters::free_events, "frees so far"},
    counter_field{"requested_bytes", "bytes", &counters::requested_bytes, "bytes asked for by live blocks"},
    counter_field{"active_blocks", "1", &counters::active_blocks, "live blocks"},
    counter_field{"segments", "1", &counters::segments, "segments held"},
    counter_field{"inactive_split_blocks", "1", &counters::inactive_split_blocks, "free blocks of split segments"},
    counter_field{"inactive_split_bytes", "bytes", &counters::inactive_split_bytes,
                  "bytes in free blocks of split segments"},
    counter_field{"device_mallocs", "1", &counters::device_mallocs, "calls that took device memory so far"},
    counter_field{"device_frees", "1", &counters::device_frees, "calls that gave device memory back so far"},
    counter_field{"alloc_retries", "1", &counters::alloc_retries, "allocations that needed the cache flushed"},
    counter_field{"ooms", "1", &counters::ooms, "allocations that failed for lack of memory"},
};

template <class Visit>
void describe(counters& x, Visit&& visit) {
  for (auto const& field : counter_fields) visit(field.name.data(), x.*field.member);
}

} // namespace plateau
