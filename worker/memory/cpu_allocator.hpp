// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace plateau {

struct cpu_allocator_options {
  std::size_t capacity_bytes = 0; ///< most that segments may add up to; 0 is the machine's memory
  bool populate = true;           ///< segments are resident once taken; else pages come at first use
};

/// A caching allocator for the CPU with the rules of PyTorch's CUDACachingAllocator (sizes, pools, splitting,
/// best fit by size then address, merging, release of whole segments), so that everything plateau says of
/// memory can be measured, and tested, without a GPU. Free blocks belong to the stream on which they were
/// allocated. Segments lie at ascending addresses in one reserved range, never twice at the same. One lock
/// for each stream; bookkeeping is in a side table, since blocks are split and have no headers. Thread-safe.
class cpu_allocator {
public:
  explicit cpu_allocator(cpu_allocator_options const& options = {});
  ~cpu_allocator(); ///< its blocks are gone, live ones too

  /// On the calling thread's stream, aligned to 512 bytes; null for 0. When the capacity or the machine is
  /// exhausted the cache is emptied and the allocation tried once more; then throws c10::OutOfMemoryError.
  void* allocate(std::size_t bytes);
  void free(void* p);             ///< on any thread; back to the stream that allocated it; null is ignored
  bool owns(void const* p) const; ///< whether `p` lies in this allocator's range

  counters read() const; ///< exact at a quiet point: no allocation or free under way
  void reset_peak();     ///< peak_allocated_bytes starts again from what is allocated now; at a quiet point
  void empty_cache();    ///< gives whole free segments back to the machine

  /// The calling thread's allocations belong to this stream from now on, in every cpu_allocator. Streams are
  /// small numbers from 0, below 65536; each thread begins on 0.
  static void enter_stream(std::int64_t stream);

private:
  struct state;
  std::unique_ptr<state> state_;
};

/// While it lives, the calling thread's CPU allocations come from the machine's plain allocator and leave no
/// trace in the counters. For the harness's own tensors, which may be freed on any thread and at any time.
/// Nests.
class unmeasured {
public:
  unmeasured();
  ~unmeasured();
  unmeasured(unmeasured const&) = delete;
  unmeasured& operator=(unmeasured const&) = delete;

private:
  bool before_;
};

/// Installs the process's one cpu_allocator as Torch's CPU allocator, and returns it. Call before the first
/// tensor; it is never removed and outlives every tensor, static ones too.
cpu_allocator& install_cpu_allocator();

} // namespace plateau
