// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/cpu_allocator.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace plateau {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t mib = std::size_t(1) << 20;

cpu_allocator_options capped(std::size_t bytes) { return {.capacity_bytes = bytes}; }

TEST(cpu_allocator, rounds_to_512_bytes_and_serves_small_blocks_from_a_2_mib_segment) {
  cpu_allocator a;
  void* const p = a.allocate(513);
  auto const c = a.read();
  EXPECT_EQ(c.allocated_bytes, 1024);
  EXPECT_EQ(c.requested_bytes, 513);
  EXPECT_EQ(c.reserved_bytes, 2 << 20);
  EXPECT_EQ(c.inactive_split_bytes, (2 << 20) - 1024);
  EXPECT_EQ(c.segment_alloc_events, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 512, 0u);
  a.free(p);
  EXPECT_EQ(a.read().allocated_bytes, 0);
  EXPECT_EQ(a.read().inactive_split_bytes, 0);
}

TEST(cpu_allocator, does_not_count_an_allocation_of_nothing) {
  cpu_allocator a;
  EXPECT_EQ(a.allocate(0), nullptr);
  a.free(nullptr);
  EXPECT_EQ(a.read(), counters{});
}

TEST(cpu_allocator, reuses_a_block_only_on_the_stream_that_allocated_it) {
  cpu_allocator a;
  cpu_allocator::enter_stream(1);
  void* const p = a.allocate(4 * mib);
  cpu_allocator::enter_stream(2);
  a.free(p);
  void* const other = a.allocate(4 * mib);
  cpu_allocator::enter_stream(1);
  void* const again = a.allocate(4 * mib);
  cpu_allocator::enter_stream(0);
  EXPECT_NE(other, p);
  EXPECT_EQ(again, p);
  EXPECT_EQ(a.read().segments, 2);
}

TEST(cpu_allocator, knows_the_peak_of_the_total_not_the_total_of_the_peaks) {
  cpu_allocator a;
  cpu_allocator::enter_stream(1);
  a.free(a.allocate(8 * mib));
  cpu_allocator::enter_stream(2);
  a.free(a.allocate(6 * mib));
  cpu_allocator::enter_stream(0);
  EXPECT_EQ(a.read().peak_allocated_bytes, 8 << 20);
  a.reset_peak();
  EXPECT_EQ(a.read().peak_allocated_bytes, 0);
}

bool resident(void* p) {
  auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const first = static_cast<std::byte*>(p) - reinterpret_cast<std::uintptr_t>(p) % page;
  unsigned char in_core = 0;
  return mincore(first, page, &in_core) == 0 && (in_core & 1) != 0;
}

TEST(cpu_allocator, populates_segments_when_it_takes_them_and_gives_them_back_when_the_cache_is_emptied) {
  cpu_allocator a;
  auto* const p = static_cast<std::byte*>(a.allocate(12 * mib));
  EXPECT_TRUE(resident(p + 11 * mib)) << "never written, yet resident";
  a.free(p);
  EXPECT_EQ(a.read().reserved_bytes, 12 << 20);
  a.empty_cache();
  EXPECT_EQ(a.read().reserved_bytes, 0);
  EXPECT_EQ(a.read().device_frees, 1);
  EXPECT_FALSE(resident(p));
}

TEST(cpu_allocator, keeps_a_segment_with_a_live_block_when_the_cache_is_emptied) {
  cpu_allocator a;
  void* const live = a.allocate(1);
  a.free(a.allocate(1000));
  a.empty_cache();
  EXPECT_EQ(a.read().segments, 1);
  a.free(live);
}

TEST(cpu_allocator, flushes_every_streams_cache_before_it_gives_up) {
  cpu_allocator a(capped(40 * mib));
  cpu_allocator::enter_stream(1);
  a.free(a.allocate(30 * mib));
  cpu_allocator::enter_stream(2);
  a.free(a.allocate(20 * mib));
  cpu_allocator::enter_stream(0);
  EXPECT_EQ(a.read().alloc_retries, 1);
  EXPECT_EQ(a.read().ooms, 0);
}

TEST(cpu_allocator, says_how_much_it_holds_when_it_is_out_of_memory) {
  cpu_allocator a(capped(40 * mib));
  void* const p = a.allocate(30 * mib);
  EXPECT_THAT([&] { a.allocate(20 * mib); },
              ThrowsMessage<c10::OutOfMemoryError>(
                  HasSubstr("CPU out of memory. Tried to allocate 20.00 MiB. The allocator may hold 40.00 MiB and "
                            "holds 30.00 MiB, of which 30.00 MiB is allocated")));
  EXPECT_EQ(a.read().ooms, 1);
  EXPECT_EQ(a.read().allocation_events, 1);
  a.free(p);
  a.free(a.allocate(20 * mib));
}

TEST(cpu_allocator, takes_a_size_near_the_largest_integer_for_out_of_memory) {
  cpu_allocator a;
  EXPECT_THROW(a.allocate(~std::size_t(0)), c10::OutOfMemoryError);
}

TEST(cpu_allocator, refuses_a_pointer_that_is_not_live) {
  cpu_allocator a;
  auto* const p = static_cast<std::byte*>(a.allocate(1024));
  EXPECT_ANY_THROW(a.free(p + 512));
  a.free(p);
  EXPECT_ANY_THROW(a.free(p));
}

TEST(cpu_allocator, refuses_a_stream_that_it_cannot_have) {
  EXPECT_ANY_THROW(cpu_allocator::enter_stream(-1));
  EXPECT_ANY_THROW(cpu_allocator::enter_stream(1 << 20));
}

/// Blocks handed from thread to thread, each filled with a byte of its own from end to end.
class exchange {
public:
  struct item {
    std::byte* p;
    std::size_t size;
    std::byte fill;
  };
  void put(item it) {
    std::lock_guard const lock(mutex_);
    items_.push_back(it);
  }
  bool take(item& it, std::size_t choice) {
    std::lock_guard const lock(mutex_);
    if (items_.empty()) return false;
    std::swap(items_[choice % items_.size()], items_.back());
    it = items_.back();
    items_.pop_back();
    return true;
  }

private:
  std::mutex mutex_;
  std::vector<item> items_;
};

bool intact(exchange::item const& it) {
  return std::all_of(it.p, it.p + it.size, [&](std::byte b) { return b == it.fill; });
}

void allocate_and_free(cpu_allocator& a, exchange& shared, int thread, std::atomic<int>& damaged) {
  cpu_allocator::enter_stream(thread % 3); // some threads share a stream
  std::mt19937 random(static_cast<unsigned>(thread));
  for (int i = 0; i < 4000; ++i) {
    std::size_t const size = 1 + random() % (random() % 8 == 0 ? 3 * mib : 9000);
    exchange::item it{static_cast<std::byte*>(a.allocate(size)), size, static_cast<std::byte>(random())};
    std::memset(it.p, static_cast<int>(it.fill), size);
    shared.put(it);
    while (random() % 2 == 0 && shared.take(it, random())) {
      if (!intact(it)) ++damaged;
      a.free(it.p);
    }
    if (random() % 500 == 0) a.empty_cache();
  }
}

TEST(cpu_allocator, keeps_blocks_apart_and_counts_exactly_while_threads_free_each_others_blocks) {
  cpu_allocator a;
  exchange shared;
  std::atomic<int> damaged{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) threads.emplace_back([&, t] { allocate_and_free(a, shared, t, damaged); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(a.read().allocation_events, 6 * 4000);
  EXPECT_EQ(a.read().allocation_events - a.read().free_events, a.read().active_blocks);

  for (exchange::item it{}; shared.take(it, 0);) {
    if (!intact(it)) ++damaged;
    a.free(it.p);
  }
  EXPECT_EQ(damaged, 0);
  a.empty_cache();
  auto c = a.read();
  EXPECT_GT(c.peak_allocated_bytes, 0);
  EXPECT_EQ(c.device_mallocs, c.device_frees);
  EXPECT_EQ(c.free_events, c.allocation_events);
  counters balanced;
  balanced.allocation_events = balanced.free_events = c.allocation_events;
  balanced.device_mallocs = balanced.device_frees = balanced.segment_alloc_events = c.device_mallocs;
  balanced.peak_allocated_bytes = c.peak_allocated_bytes;
  EXPECT_EQ(c, balanced) << "everything else is back to nothing";
}

TEST(installed_allocator, counts_torchs_tensors) {
  auto& a = install_cpu_allocator();
  EXPECT_EQ(&install_cpu_allocator(), &a);
  auto const before = a.read();
  auto const t = at::empty({1000});
  auto const after = a.read();
  EXPECT_TRUE(a.owns(t.data_ptr()));
  EXPECT_EQ(after.allocation_events - before.allocation_events, 1);
  EXPECT_EQ(after.requested_bytes - before.requested_bytes, 4000);
  EXPECT_EQ(after.allocated_bytes - before.allocated_bytes, 4096);
}

TEST(installed_allocator, makes_one_event_for_a_linear_layer_in_the_steady_state) {
  auto& a = install_cpu_allocator();
  c10::InferenceMode const inference;
  auto const x = at::ones({4, 64}), weight = at::ones({32, 64}), bias = at::ones({32});
  at::linear(x, weight, bias);
  auto const before = a.read();
  at::linear(x, weight, bias);
  auto const after = a.read();
  EXPECT_EQ(after.allocation_events - before.allocation_events, 1);
  EXPECT_EQ(after.free_events - before.free_events, 1);
  EXPECT_EQ(after.segment_alloc_events, before.segment_alloc_events);
}

TEST(installed_allocator, gives_and_takes_raw_pointers) {
  auto& a = install_cpu_allocator();
  auto const before = a.read();
  auto* const torchs = c10::GetCPUAllocator();
  void* const p = torchs->raw_allocate(100);
  EXPECT_EQ(a.read().allocation_events - before.allocation_events, 1);
  torchs->raw_deallocate(p);
  EXPECT_EQ(a.read().allocated_bytes, before.allocated_bytes);
}

TEST(unmeasured, leaves_no_trace_wherever_its_tensors_are_freed) {
  auto& a = install_cpu_allocator();
  auto const before = a.read();
  at::Tensor plain;
  {
    unmeasured const off;
    plain = at::ones({1 << 20});
    { unmeasured const nested; }
    EXPECT_FALSE(a.owns(at::ones({10}).data_ptr()));
  }
  EXPECT_FALSE(a.owns(plain.data_ptr()));
  std::thread([t = std::move(plain)]() mutable { t.reset(); }).join();
  EXPECT_EQ(a.read(), before);
  EXPECT_TRUE(a.owns(at::ones({10}).data_ptr())) << "measured again";
}

TEST(unmeasured, frees_measured_tensors_as_measured) {
  auto& a = install_cpu_allocator();
  auto t = at::empty({10});
  auto const before = a.read();
  unmeasured const off;
  t.reset();
  EXPECT_EQ(a.read().free_events - before.free_events, 1);
}

// Freed after main(): the process would crash at its end if the allocator were gone by then.
at::Tensor& static_tensor() {
  static at::Tensor t;
  return t;
}

TEST(installed_allocator, outlives_static_tensors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        install_cpu_allocator();
        static_tensor() = at::ones({100});
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace plateau
