// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: memory.
#include "memory.h"

#include "settings.h"

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ADDRESS ((uintptr_t)0x300000000000)
#define GRANULE ((size_t)2 << 20)
enum { most_granules = 1 << 24 }; // 32 TiB of addresses

struct reservation {
  size_t size;
  int device;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards what is below
static struct reservation reservations[most_granules];    // by the granule where each begins
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

int pretend_take_bytes(int device, size_t bytes) {
  pthread_mutex_lock(&mutex);
  int const fits = used[device] + bytes <= pretend_memory_bytes();
  if (fits) used[device] += bytes;
  pthread_mutex_unlock(&mutex);
  return fits;
}

void pretend_return_bytes(int device, size_t bytes) {
  pthread_mutex_lock(&mutex);
  used[device] -= bytes;
  pthread_mutex_unlock(&mutex);
}

void* pretend_reserve_addresses(int device, size_t bytes) {
  size_t const granules = (bytes + GRANULE - 1) / GRANULE;
  void* first = NULL;
  pthread_mutex_lock(&mutex);
  if (granules <= most_granules - next_granule) {
    first = (void*)(FIRST_ADDRESS + next_granule * GRANULE);
    reservations[next_granule] = (struct reservation){bytes, device};
    next_granule += granules;
  }
  pthread_mutex_unlock(&mutex);
  return first;
}

int pretend_release_addresses(void* first, size_t* bytes) {
  if (!is_device_address(first)) return -1;
  struct reservation* const released = &reservations[((uintptr_t)first - FIRST_ADDRESS) / GRANULE];
  pthread_mutex_lock(&mutex);
  int const device = released->size > 0 ? released->device : -1;
  *bytes = released->size;
  released->size = 0;
  pthread_mutex_unlock(&mutex);
  return device;
}

cudaError_t cudaMalloc(void** p, size_t size) {
  int const device = this_device();
  if (!pretend_take_bytes(device, size)) return cudaErrorMemoryAllocation;
  *p = pretend_reserve_addresses(device, size);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  size_t bytes = 0;
  int const device = pretend_release_addresses(p, &bytes);
  if (device < 0) return cudaErrorInvalidValue;
  pretend_return_bytes(device, bytes);
  return cudaSuccess;
}

// The pool of the stream-ordered allocator keeps nothing.
cudaError_t cudaMallocAsync(void** p, size_t size, cudaStream_t) { return cudaMalloc(p, size); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return cudaFree(p); }

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, enum cudaMemPoolAttr, void* value) {
  memset(value, 0, sizeof(uint64_t));
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
  while (granule > 0 && reservations[granule].size == 0) --granule; // to where the allocation begins
  attributes->device = reservations[granule].device;
  pthread_mutex_unlock(&mutex);
  return cudaSuccess;
}
