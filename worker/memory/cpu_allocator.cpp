// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/cpu_allocator.hpp"

#include "worker/memory/address_range.hpp"
#include "worker/memory/attribution.hpp"
#include "worker/memory/stream_heap.hpp"

#include <c10/util/Exception.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>

namespace plateau {
namespace {

constexpr std::size_t most_streams = 65536;

thread_local std::size_t current_stream = 0;

std::size_t machine_memory_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::string readable(std::size_t bytes) {
  std::array<char, 32> text{};
  double const mib = static_cast<double>(bytes) / (1 << 20);
  if (mib >= 1024)
    std::snprintf(text.data(), text.size(), "%.2f GiB", mib / 1024);
  else
    std::snprintf(text.data(), text.size(), "%.2f MiB", mib);
  return text.data();
}

} // namespace

struct cpu_allocator::state {
  explicit state(cpu_allocator_options const& options)
      : range(options.capacity_bytes ? options.capacity_bytes : machine_memory_bytes(), options.populate) {}

  stream_heap& heap(std::size_t stream);
  [[noreturn]] void throw_out_of_memory(std::size_t bytes);

  template <class Visit>
  void for_each_heap(Visit visit) {
    std::lock_guard const lock(creating);
    for (stream_heap& heap : all) visit(heap);
  }

  address_range range;
  alignas(64) live_bytes live;
  alignas(64) std::atomic<std::int64_t> alloc_retries{0}, ooms{0};
  std::array<std::atomic<stream_heap*>, most_streams> heaps{}; ///< by stream; null until it allocates
  std::mutex creating;                                         ///< guards what is below
  std::deque<stream_heap> all;
};

cpu_allocator::cpu_allocator(cpu_allocator_options const& options) : state_(new state(options)) {}
cpu_allocator::~cpu_allocator() = default;

void* cpu_allocator::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > state_->range.capacity()) state_->throw_out_of_memory(bytes);
  stream_heap& heap = state_->heap(current_stream);
  memory_block const* block = heap.allocate(bytes);
  if (!block) {
    empty_cache();
    state_->alloc_retries.fetch_add(1, std::memory_order_relaxed);
    block = heap.allocate(bytes);
  }
  if (!block) state_->throw_out_of_memory(bytes);
  book_allocation(block->address, static_cast<std::int64_t>(block->size));
  return block->address;
}

void cpu_allocator::free(void* p) {
  if (!p) return;
  TORCH_INTERNAL_ASSERT(owns(p), "freed a pointer that this allocator did not give");
  memory_block* const block = state_->range.block_at(p);
  TORCH_INTERNAL_ASSERT(block && block->address == p, "freed a pointer that is not live");
  book_free(p, static_cast<std::int64_t>(block->size));
  block->heap->free(*block);
}

bool cpu_allocator::owns(void const* p) const { return state_->range.contains(p); }

counters cpu_allocator::read() const {
  counters total;
  state_->for_each_heap([&](stream_heap const& heap) {
    counters const part = heap.read();
    for (auto const& field : counter_fields) total.*field.member += part.*field.member;
  });
  total.allocated_bytes = state_->live.now;
  total.peak_allocated_bytes = state_->live.peak;
  total.alloc_retries = state_->alloc_retries;
  total.ooms = state_->ooms;
  return total;
}

void cpu_allocator::reset_peak() { state_->live.peak = state_->live.now.load(); }

void cpu_allocator::empty_cache() {
  state_->for_each_heap([](stream_heap& heap) { heap.release_cached(); });
}

void cpu_allocator::enter_stream(std::int64_t stream) {
  TORCH_CHECK_INDEX(stream >= 0 && static_cast<std::size_t>(stream) < most_streams, "stream ", stream,
                    " of the CPU allocator; it has streams 0 to ", most_streams - 1);
  current_stream = static_cast<std::size_t>(stream);
}

stream_heap& cpu_allocator::state::heap(std::size_t stream) {
  if (stream_heap* const known = heaps[stream].load(std::memory_order_acquire)) return *known;
  std::lock_guard const lock(creating);
  if (stream_heap* const known = heaps[stream].load(std::memory_order_acquire)) return *known;
  stream_heap& created = all.emplace_back(range, live);
  heaps[stream].store(&created, std::memory_order_release);
  return created;
}

void cpu_allocator::state::throw_out_of_memory(std::size_t bytes) {
  ooms.fetch_add(1, std::memory_order_relaxed);
  auto const reserved = range.taken();
  auto const allocated = static_cast<std::size_t>(live.now.load());
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CPU out of memory. Tried to allocate ", readable(bytes),
                   ". The allocator may hold ", readable(range.capacity()), " and holds ", readable(reserved),
                   ", of which ", readable(allocated), " is allocated and ",
                   readable(reserved - std::min(allocated, reserved)), " is reserved but unallocated.");
}

} // namespace plateau
