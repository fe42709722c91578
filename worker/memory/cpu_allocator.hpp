// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace c10 {
struct Allocator;
}

namespace plateau {

/// A caching allocator for the CPU with the rules of PyTorch's CUDACachingAllocator (sizes, pools, splitting, best fit
/// by size then address, merging, release of whole segments), so that everything plateau says of memory can be
/// measured, and tested, without a GPU. Free blocks belong to the stream on which they were allocated. Segments lie at
/// ascending addresses in one reserved range, and are populated when mapped. One lock for each stream; bookkeeping
/// is in a side table, since blocks are split and have no headers. Thread-safe.
class cpu_allocator {
public:
  cpu_allocator();
  ~cpu_allocator();

  void* allocate(std::size_t bytes); ///< on the calling thread's stream; null for 0; throws c10::OutOfMemoryError
  void free(void* p);                ///< on any thread; back to the stream that allocated it

  counters read() const;
  void reset_peak();
  void empty_cache(); ///< gives whole free segments back to the machine

  /// The calling thread's allocations belong to this stream from now on. Streams are small numbers from 0; each
  /// thread begins on 0.
  static void enter_stream(std::int64_t stream);

private:
  struct state;
  std::unique_ptr<state> state_;
};

/// While it lives, the calling thread's CPU allocations come from the machine's plain allocator and leave no trace in
/// the counters. For the harness's own tensors.
class unmeasured {
public:
  unmeasured();
  ~unmeasured();
  unmeasured(unmeasured const&) = delete;
  unmeasured& operator=(unmeasured const&) = delete;

private:
  bool before_;
};

/// Installs the process's one cpu_allocator as Torch's CPU allocator, and returns it. Call before the first tensor;
/// it is never removed.
cpu_allocator& install_cpu_allocator();

} // namespace plateau
