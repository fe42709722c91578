// SPDX-License-Identifier: Apache-2.0
#include "worker/memory/cpu_allocator.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

namespace plateau {
namespace {

constexpr std::size_t plain_alignment = 64;

thread_local bool bypassed = false;

// Torch's deleter is a bare function, so the allocator that it returns to cannot be passed to it.
cpu_allocator* installed = nullptr;

void* allocate_plain(std::size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, plain_alignment, bytes) != 0)
    TORCH_CHECK_WITH(OutOfMemoryError, false, "CPU out of memory. Tried to allocate ", bytes,
                     " bytes outside the measured allocator.");
  return p;
}

void free_measured_or_plain(void* p) {
  if (installed->owns(p))
    installed->free(p);
  else
    std::free(p);
}

class torch_cpu_allocator final : public c10::Allocator {
public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* p = nullptr;
    if (bytes > 0) p = bypassed ? allocate_plain(bytes) : installed->allocate(bytes);
    return {p, p, &free_measured_or_plain, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_measured_or_plain; }
  void copy_data(void* to, void const* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

// Never deleted: static tensors are freed after main() has returned.
cpu_allocator* install_once() {
  installed = new cpu_allocator;
  c10::SetCPUAllocator(new torch_cpu_allocator, std::numeric_limits<std::uint8_t>::max());
  return installed;
}

} // namespace

unmeasured::unmeasured() : before_(std::exchange(bypassed, true)) {}
unmeasured::~unmeasured() { bypassed = before_; }

cpu_allocator& install_cpu_allocator() {
  static cpu_allocator* const once = install_once();
  return *once;
}

} // namespace plateau
