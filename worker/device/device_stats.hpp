// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"

#include <c10/core/CachingDeviceAllocator.h>

namespace plateau {

/// The statistics of PyTorch's caching allocator (all pools together) as our counters.
inline counters counters_of(c10::CachingDeviceAllocator::DeviceStats const& stats) {
  counters c;
  c.allocated_bytes = stats.allocated_bytes[0].current;
  c.reserved_bytes = stats.reserved_bytes[0].current;
  c.peak_allocated_bytes = stats.allocated_bytes[0].peak;
  c.allocation_events = stats.allocation[0].allocated;
  c.segment_alloc_events = stats.segment[0].allocated;
  c.free_events = stats.allocation[0].freed;
  c.requested_bytes = stats.requested_bytes[0].current;
  c.active_blocks = stats.active[0].current;
  c.segments = stats.segment[0].current;
  c.inactive_split_blocks = stats.inactive_split[0].current;
  c.inactive_split_bytes = stats.inactive_split_bytes[0].current;
  c.device_mallocs = stats.num_device_alloc;
  c.device_frees = stats.num_device_free;
  c.alloc_retries = stats.num_alloc_retries;
  c.ooms = stats.num_ooms;
  return c;
}

} // namespace plateau
