// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace plateau {

struct memory_block;

/// Every block starts at a multiple of this, in bytes.
inline constexpr std::size_t block_alignment = 512;

/// One reserved range of addresses, from which segments are taken in ascending order and never twice: best
/// fit breaks ties by address, so where segments lie decides which block is reused, and the machine's own
/// mmap would place them downwards. The range also knows which block starts at an address. Thread-safe.
class address_range {
public:
  /// Segments may add up to `capacity_bytes`. Populated segments are resident when take() returns.
  address_range(std::size_t capacity_bytes, bool populate);
  ~address_range();
  address_range(address_range const&) = delete;
  address_range& operator=(address_range const&) = delete;

  /// A segment of zeros; `bytes` is a multiple of 2 MiB. Null when the capacity is reached or the machine
  /// refuses.
  std::byte* take(std::size_t bytes);
  void give_back(std::byte* segment, std::size_t bytes);

  bool contains(void const* p) const { return offset(p) < size_; }

  /// The place for the block that starts at `p`, an address in this range; null while there is none.
  memory_block*& block_at(void const* p) const { return blocks_[offset(p) / block_alignment]; }

  std::size_t capacity() const { return capacity_; }
  std::size_t taken() const;

private:
  /// Beyond size_ for any address outside the range, those below it too.
  std::size_t offset(void const* p) const {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(first_);
  }
  std::byte* claim(std::size_t bytes);

  std::byte* first_ = nullptr;
  std::size_t size_ = 0;
  memory_block** blocks_ = nullptr; ///< one word for each block_alignment bytes, resident only where it is used
  std::size_t capacity_;
  bool populate_;

  std::mutex mutable mutex_; ///< guards what is below
  std::size_t next_ = 0;     ///< offset of the next segment
  std::size_t taken_ = 0;
};

} // namespace plateau
