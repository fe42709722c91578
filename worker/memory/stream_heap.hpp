// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/counters.hpp"
#include "worker/memory/address_range.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

namespace plateau {

class stream_heap;

/// A part of a segment: live, or free in its heap's pool. Blocks tile their segment.
struct memory_block {
  std::byte* address = nullptr;
  std::size_t size = 0;
  std::size_t requested = 0; ///< of a live block: the bytes asked for
  memory_block* before = nullptr;
  memory_block* after = nullptr; ///< its neighbours in the segment
  stream_heap* heap = nullptr;
  bool small = false; ///< which of the heap's pools it belongs to
  bool live = false;
};

/// Live bytes of all streams together, and their peak: a peak is of the total, so it cannot be summed over
/// streams.
struct live_bytes {
  std::atomic<std::int64_t> now{0}, peak{0};
  void add(std::int64_t bytes);
  void remove(std::int64_t bytes) { now.fetch_sub(bytes, std::memory_order_relaxed); }
};

/// Free blocks by size, then address. Flat: there are few of them, and a sorted array beats a tree of nodes.
class block_pool {
public:
  struct entry {
    std::size_t size;
    std::byte* address;
    auto operator<=>(entry const&) const = default;
  };
  void insert(memory_block const& block);
  void remove(memory_block const& block);
  std::byte* take_best_fit(std::size_t size); ///< the first that is large enough; null when none is

  /// Removes those entries for which `chosen` is true.
  template <class Predicate>
  void remove_if(Predicate chosen) {
    std::erase_if(entries_, chosen);
  }

private:
  std::vector<entry> entries_;
};

/// The blocks allocated on one stream, under one lock. Sizes, pools, splits and merges are
/// CUDACachingAllocator's.
class stream_heap {
public:
  stream_heap(address_range& range, live_bytes& live) : range_(range), live_(live) {}
  stream_heap(stream_heap const&) = delete;
  stream_heap& operator=(stream_heap const&) = delete;

  /// A live block of at least `bytes` > 0. Null when nothing cached fits and the range gives no segment.
  memory_block const* allocate(std::size_t bytes);
  void free(memory_block& block);
  void release_cached(); ///< gives segments without a live block back to the range

  /// This stream's part of the counters; 0 for those that are kept for all streams together.
  counters read() const;

private:
  block_pool& pool(bool small) { return small ? small_ : large_; }
  memory_block* take_cached(std::size_t size);
  memory_block* take_segment(std::size_t size);
  void split(memory_block& block, std::size_t size);
  memory_block& merge(memory_block& block);
  void absorb_next(memory_block& block);
  void release_cached(block_pool& pool);
  void take_out_of_split(memory_block const& block);
  memory_block* new_block();

  address_range& range_;
  live_bytes& live_;
  std::mutex mutable mutex_; ///< guards what is below
  block_pool small_, large_;
  std::deque<memory_block> blocks_;   ///< all that ever were, at fixed addresses
  std::vector<memory_block*> unused_; ///< of blocks_
  counters counters_;
};

} // namespace plateau
