// SPDX-License-Identifier: Apache-2.0
// Replays a trace (standard input) through PyTorch's own CUDACachingAllocator on the pretend GPU, and writes
// its counters after every step (standard output).
#include "tests/torch/allocator_trace.hpp"
#include "worker/device/device_stats.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <iostream>
#include <unordered_map>

// NOLINTBEGIN(readability-identifier-naming): Torch's names
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*func)(c10::DeviceIndex)); // libtorch_cuda sets it; here is libc10_cuda alone
}
// NOLINTEND(readability-identifier-naming)

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using plateau::trace::action;

class replay {
public:
  void run(plateau::trace::step const& step) {
    switch (step.what) {
    case action::allocate: return allocate(step);
    case action::free: return void(live_.erase(step.block));
    case action::empty_cache: return allocator::emptyCache();
    case action::reset_peak: return allocator::resetPeakStats(0);
    }
  }

private:
  c10::cuda::CUDAStream stream(std::int64_t number) {
    if (number == 0) return c10::cuda::getDefaultCUDAStream(0);
    auto const known = streams_.find(number);
    if (known != streams_.end()) return known->second;
    return streams_.emplace(number, c10::cuda::getStreamFromPool(false, 0)).first->second;
  }

  void allocate(plateau::trace::step const& step) {
    c10::cuda::CUDAStreamGuard const guard(stream(step.stream));
    try {
      live_.emplace(step.block, allocator::get()->allocate(static_cast<std::size_t>(step.bytes)));
    } catch (c10::OutOfMemoryError const&) { // counted by the allocator; the block is not live
    }
  }

  std::unordered_map<std::int64_t, c10::cuda::CUDAStream> streams_;
  std::unordered_map<std::int64_t, c10::DataPtr> live_;
};

plateau::counters read_counters() { return plateau::counters_of(allocator::getDeviceStats(0)); }

} // namespace

int main() {
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  allocator::init(1);
  replay real;
  for (auto const& step : plateau::trace::read(std::cin)) {
    real.run(step);
    plateau::trace::write(read_counters(), std::cout);
  }
  std::cout.flush();
  _Exit(std::cout ? 0 : 1); // the device that the destructors would talk to is not there
}
