// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: memory. Device addresses are made up, ascending and never given out twice.
#include "settings.h"

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ADDRESS ((uintptr_t)0x300000000000)
#define GRANULE ((size_t)2 << 20)
enum { most_granules = 1 << 22 }; // 8 TiB of addresses

struct allocation {
  size_t size;
  int device;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards what is below
static struct allocation allocations[most_granules];      // by the granule where each begins
static size_t next_granule = 0;
static size_t used[pretend_most_devices];

static int this_device(void) {
  int device = 0;
  cudaGetDevice(&device);
  return device;
}

static int is_device_address(void const* p) {
  uintptr_t const address = (uintptr_t)p;
  return address >= FIRST_ADDRESS && address < FIRST_ADDRESS + most_granules * GRANULE;
}

cudaError_t cudaMalloc(void** p, size_t size) {
  size_t const granules = (size + GRANULE - 1) / GRANULE;
  int const device = this_device();
  cudaError_t result = cudaErrorMemoryAllocation;
  pthread_mutex_lock(&mutex);
  if (used[device] + size <= pretend_memory_bytes() && granules <= most_granules - next_granule) {
    *p = (void*)(FIRST_ADDRESS + next_granule * GRANULE);
    allocations[next_granule] = (struct allocation){size, device};
    next_granule += granules;
    used[device] += size;
    result = cudaSuccess;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}

cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  if (!is_device_address(p)) return cudaErrorInvalidValue;
  struct allocation* const freed = &allocations[((uintptr_t)p - FIRST_ADDRESS) / GRANULE];
  pthread_mutex_lock(&mutex);
  used[freed->device] -= freed->size;
  freed->size = 0;
  pthread_mutex_unlock(&mutex);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  int const device = this_device();
  pthread_mutex_lock(&mutex);
  *total = pretend_memory_bytes();
  *free_bytes = *total - used[device];
  pthread_mutex_unlock(&mutex);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** p, size_t size, unsigned) {
  *p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void* p) {
  free(p);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, void const*, size_t size, enum cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToHost) memset(to, 0, size);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, void const* from, size_t size, enum cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, size, kind);
}

cudaError_t cudaGetSymbolAddress(void** p, void const*) {
  *p = (void*)0x2000;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, void const* p) {
  memset(attributes, 0, sizeof *attributes);
  attributes->type = cudaMemoryTypeUnregistered;
  if (!is_device_address(p)) return cudaSuccess;
  attributes->type = cudaMemoryTypeDevice;
  size_t granule = ((uintptr_t)p - FIRST_ADDRESS) / GRANULE;
  pthread_mutex_lock(&mutex);
  while (granule > 0 && allocations[granule].size == 0) --granule; // to where the allocation begins
  attributes->device = allocations[granule].device;
  pthread_mutex_unlock(&mutex);
  return cudaSuccess;
}
