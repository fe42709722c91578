// SPDX-License-Identifier: Apache-2.0
// What an allocation costs: one thread's pair of 4 MiB and 8 KiB, allocated and freed through Torch's own interface, by
// plateau's CPU allocator and by PyTorch's CUDACachingAllocator. The latter needs a GPU, or the pretend one:
//   LD_LIBRARY_PATH=build/pretend_gpu LD_PRELOAD=build/pretend_gpu/libpretend_cuda.so build/bench/allocator_pair
#include "worker/memory/cpu_allocator.hpp"

#include <benchmark/benchmark.h>
#include <c10/core/CPUAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>

namespace {

constexpr std::size_t large = 4 << 20, small = 8 << 10;

void run_pairs(benchmark::State& state, c10::Allocator& allocator) {
  for (auto _ : state) {
    auto const a = allocator.allocate(large);
    auto const b = allocator.allocate(small);
    benchmark::DoNotOptimize(a.get());
    benchmark::DoNotOptimize(b.get());
  }
  state.SetItemsProcessed(state.iterations());
}

void plateau_cpu(benchmark::State& state) {
  plateau::cpu_allocator::enter_stream(state.thread_index());
  run_pairs(state, *c10::GetCPUAllocator());
}

void pytorch_cuda(benchmark::State& state) {
  if (c10::cuda::device_count() == 0) return state.SkipWithError("no GPU, and no pretend GPU preloaded");
  c10::cuda::CUDAStreamGuard const own_stream(c10::cuda::getStreamFromPool(false, 0));
  run_pairs(state, *c10::cuda::CUDACachingAllocator::get());
}

} // namespace

BENCHMARK(plateau_cpu)->ThreadRange(1, 4)->UseRealTime();
BENCHMARK(pytorch_cuda)->ThreadRange(1, 4)->UseRealTime();

int main(int count, char** arguments) {
  plateau::install_cpu_allocator();
  if (c10::cuda::device_count() > 0) c10::cuda::CUDACachingAllocator::init(c10::cuda::device_count());
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
  std::_Exit(0); // the pretend GPU is gone before Torch's destructors run
}
