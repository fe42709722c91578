// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/address_range.hpp"

#include "schemas/error.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

namespace plateau {
namespace {

constexpr std::size_t segment_alignment = std::size_t(2) << 20;
constexpr std::size_t most_addresses = std::size_t(16) << 40;
constexpr std::size_t least_addresses = std::size_t(1) << 30;
constexpr int reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

std::size_t table_bytes(std::size_t addresses) { return addresses / block_alignment * sizeof(memory_block*); }

void* map_or_null(void* where, std::size_t bytes, int protection, int flags) {
  void* const p = mmap(where, bytes, protection, flags, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

std::byte* aligned_up(void* p) {
  auto const address = reinterpret_cast<std::uintptr_t>(p);
  auto const gap = (segment_alignment - address % segment_alignment) % segment_alignment;
  return static_cast<std::byte*>(p) + gap;
}

} // namespace

// A limit on the address space (ulimit -v, or one that a batch system sets) may refuse the full range: take
// what there is.
address_range::address_range(std::size_t capacity_bytes, bool populate)
    : capacity_(capacity_bytes), populate_(populate) {
  for (size_ = most_addresses; size_ >= least_addresses; size_ /= 2) {
    void* const range = map_or_null(nullptr, size_ + segment_alignment, PROT_NONE, reserved);
    if (!range) continue;
    void* const table = map_or_null(nullptr, table_bytes(size_), PROT_READ | PROT_WRITE, reserved);
    if (table) {
      first_ = aligned_up(range);
      munmap(range, static_cast<std::size_t>(first_ - static_cast<std::byte*>(range)));
      blocks_ = static_cast<memory_block**>(table);
      return;
    }
    munmap(range, size_ + segment_alignment);
  }
  throw input_error(std::string("no range of addresses for the CPU allocator: ") + std::strerror(errno) +
                    "; it needs 1 GiB of address space at least, so raise the limit (ulimit -v)");
}

address_range::~address_range() {
  munmap(first_, size_);
  munmap(blocks_, table_bytes(size_));
}

std::byte* address_range::take(std::size_t bytes) {
  std::byte* const segment = claim(bytes);
  if (!segment) return nullptr;
  int const flags = reserved | MAP_FIXED | (populate_ ? MAP_POPULATE : 0);
  if (map_or_null(segment, bytes, PROT_READ | PROT_WRITE, flags)) return segment;
  std::lock_guard const lock(mutex_);
  taken_ -= bytes;
  return nullptr;
}

void address_range::give_back(std::byte* segment, std::size_t bytes) {
  map_or_null(segment, bytes, PROT_NONE, reserved | MAP_FIXED);
  madvise(&block_at(segment), table_bytes(bytes), MADV_DONTNEED);
  std::lock_guard const lock(mutex_);
  taken_ -= bytes;
}

std::size_t address_range::taken() const {
  std::lock_guard const lock(mutex_);
  return taken_;
}

std::byte* address_range::claim(std::size_t bytes) {
  std::lock_guard const lock(mutex_);
  if (bytes > capacity_ - std::min(taken_, capacity_) || bytes > size_ - next_) return nullptr;
  std::byte* const segment = first_ + next_;
  next_ += bytes;
  taken_ += bytes;
  return segment;
}

} // namespace plateau
