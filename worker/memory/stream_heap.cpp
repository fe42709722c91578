// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/stream_heap.hpp"

#include <c10/util/Exception.h>

#include <algorithm>

namespace plateau {
namespace {

constexpr std::size_t mib = std::size_t(1) << 20;
constexpr std::size_t largest_small = mib;
constexpr std::size_t small_segment = 2 * mib;
constexpr std::size_t large_segment = 20 * mib;
constexpr std::size_t own_segment_from = 10 * mib;
constexpr std::size_t own_segment_rounding = 2 * mib;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t segment_size(std::size_t block) {
  if (block <= largest_small) return small_segment;
  if (block < own_segment_from) return large_segment;
  return rounded_up(block, own_segment_rounding);
}

// In the large pool a small remainder stays with its block, lest the pool fill with pieces that nobody can
// use.
bool worth_splitting(memory_block const& block, std::size_t size) {
  std::size_t const rest = block.size - size;
  return block.small ? rest >= block_alignment : rest > largest_small;
}

bool is_split(memory_block const& block) { return block.before || block.after; }

std::int64_t as_count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

} // namespace

void live_bytes::add(std::int64_t bytes) {
  std::int64_t const total = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t highest = peak.load(std::memory_order_relaxed);
  while (total > highest && !peak.compare_exchange_weak(highest, total, std::memory_order_relaxed)) {
  }
}

memory_block const* stream_heap::allocate(std::size_t bytes) {
  std::size_t const size = rounded_up(bytes, block_alignment);
  std::lock_guard const lock(mutex_);
  memory_block* block = take_cached(size);
  if (!block) block = take_segment(size);
  if (!block) return nullptr;
  if (worth_splitting(*block, size)) split(*block, size);
  block->live = true;
  block->requested = bytes;
  counters_.allocation_events += 1;
  counters_.active_blocks += 1;
  counters_.requested_bytes += as_count(bytes);
  live_.add(as_count(block->size));
  return block;
}

void stream_heap::free(memory_block& block) {
  std::lock_guard const lock(mutex_);
  TORCH_INTERNAL_ASSERT(block.live, "freed twice");
  block.live = false;
  counters_.free_events += 1;
  counters_.active_blocks -= 1;
  counters_.requested_bytes -= as_count(block.requested);
  live_.remove(as_count(block.size));
  memory_block const& whole = merge(block);
  pool(whole.small).insert(whole);
  if (!is_split(whole)) return;
  counters_.inactive_split_blocks += 1;
  counters_.inactive_split_bytes += as_count(whole.size);
}

void stream_heap::release_cached() {
  std::lock_guard const lock(mutex_);
  release_cached(large_);
  release_cached(small_);
}

counters stream_heap::read() const {
  std::lock_guard const lock(mutex_);
  return counters_;
}

memory_block* stream_heap::take_cached(std::size_t size) {
  std::byte* const address = pool(size <= largest_small).take_best_fit(size);
  if (!address) return nullptr;
  memory_block* const block = range_.block_at(address);
  if (is_split(*block)) take_out_of_split(*block);
  return block;
}

memory_block* stream_heap::take_segment(std::size_t size) {
  std::size_t const bytes = segment_size(size);
  std::byte* const address = range_.take(bytes);
  if (!address) return nullptr;
  memory_block* const block = new_block();
  *block = {.address = address, .size = bytes, .heap = this, .small = size <= largest_small};
  range_.block_at(address) = block;
  counters_.reserved_bytes += as_count(bytes);
  counters_.segments += 1;
  counters_.segment_alloc_events += 1;
  counters_.device_mallocs += 1;
  return block;
}

/// Cuts what is left over `size` off the end of `block`, into the pool.
void stream_heap::split(memory_block& block, std::size_t size) {
  memory_block* const rest = new_block();
  *rest = {.address = block.address + size,
           .size = block.size - size,
           .before = &block,
           .after = block.after,
           .heap = this,
           .small = block.small};
  if (rest->after) rest->after->before = rest;
  block.after = rest;
  block.size = size;
  range_.block_at(rest->address) = rest;
  pool(rest->small).insert(*rest);
  counters_.inactive_split_blocks += 1;
  counters_.inactive_split_bytes += as_count(rest->size);
}

/// Joins a freed block with its free neighbours. The lowest survives, so that a block never moves.
memory_block& stream_heap::merge(memory_block& block) {
  if (block.after && !block.after->live) {
    pool(block.small).remove(*block.after);
    take_out_of_split(*block.after);
    absorb_next(block);
  }
  if (!block.before || block.before->live) return block;
  memory_block& lower = *block.before;
  pool(lower.small).remove(lower);
  take_out_of_split(lower);
  absorb_next(lower);
  return lower;
}

void stream_heap::absorb_next(memory_block& block) {
  memory_block* const next = block.after;
  block.size += next->size;
  block.after = next->after;
  if (block.after) block.after->before = &block;
  range_.block_at(next->address) = nullptr;
  unused_.push_back(next);
}

void stream_heap::release_cached(block_pool& pool) {
  pool.remove_if([this](block_pool::entry const& entry) {
    memory_block* const block = range_.block_at(entry.address);
    if (is_split(*block)) return false;
    range_.give_back(block->address, block->size);
    unused_.push_back(block);
    counters_.reserved_bytes -= as_count(entry.size);
    counters_.segments -= 1;
    counters_.device_frees += 1;
    return true;
  });
}

void stream_heap::take_out_of_split(memory_block const& block) {
  counters_.inactive_split_blocks -= 1;
  counters_.inactive_split_bytes -= as_count(block.size);
}

memory_block* stream_heap::new_block() {
  if (unused_.empty()) return &blocks_.emplace_back();
  memory_block* const block = unused_.back();
  unused_.pop_back();
  return block;
}

void block_pool::insert(memory_block const& block) {
  entry const added{block.size, block.address};
  entries_.insert(std::lower_bound(entries_.begin(), entries_.end(), added), added);
}

void block_pool::remove(memory_block const& block) {
  entries_.erase(std::lower_bound(entries_.begin(), entries_.end(), entry{block.size, block.address}));
}

std::byte* block_pool::take_best_fit(std::size_t size) {
  auto const best = std::lower_bound(entries_.begin(), entries_.end(), entry{size, nullptr});
  if (best == entries_.end()) return nullptr;
  std::byte* const address = best->address;
  entries_.erase(best);
  return address;
}

} // namespace plateau
