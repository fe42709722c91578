// SPDX-License-Identifier: Apache-2.0
// The driver's virtual memory, which expandable segments are made of: addresses are reserved first, and pieces of memory
// mapped into them one by one.
#include "memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdlib.h>

#define GRANULARITY ((size_t)2 << 20)

struct piece { // what a handle stands for
  size_t bytes;
  int device;
};

CUresult cuMemGetAllocationGranularity(size_t* bytes, CUmemAllocationProp const*, CUmemAllocationGranularity_flags) {
  *bytes = GRANULARITY;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* first, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  int device = 0;
  cudaGetDevice(&device);
  *first = (CUdeviceptr)pretend_reserve_addresses(device, bytes);
  return *first ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr first, size_t) {
  size_t bytes = 0;
  return pretend_release_addresses((void*)first, &bytes) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, CUmemAllocationProp const* where,
                     unsigned long long) {
  if (!pretend_take_bytes(where->location.id, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  struct piece* const made = malloc(sizeof *made);
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  *made = (struct piece){bytes, where->location.id};
  *handle = (CUmemGenericAllocationHandle)made;
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  struct piece* const released = (struct piece*)handle;
  pretend_return_bytes(released->device, released->bytes);
  free(released);
  return CUDA_SUCCESS;
}
