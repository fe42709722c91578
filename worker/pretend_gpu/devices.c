// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: devices and what they say of themselves, as an H200 does except for the name.
#include "settings.h"

#include <cuda_runtime_api.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { cuda_version = 13000 };

// What no CUDA has: by it the worker knows that nothing is computed.
extern int const plateau_pretend_gpu;
int const plateau_pretend_gpu = 1;

static _Thread_local int current_device = 0;
static unsigned device_flags[pretend_most_devices];

cudaError_t cudaGetDeviceCount(int* count) {
  *count = pretend_visible_devices();
  return *count ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= pretend_visible_devices()) return cudaErrorInvalidDevice;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  device_flags[current_device] = flags;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = device_flags[current_device];
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int size, int device) {
  snprintf(id, (size_t)size, "0000:%02x:00.0", (unsigned)pretend_physical_device(device) + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = cuda_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = cuda_version;
  return cudaSuccess;
}

char const* cudaGetErrorName(cudaError_t error) {
  switch (error) {
  case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
  case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
  default: return "cudaError";
  }
}

char const* cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case cudaErrorMemoryAllocation: return "out of memory";
  case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
  case cudaErrorNoDevice: return "no CUDA-capable device is detected";
  default: return "error of the pretend GPU";
  }
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrComputeCapabilityMajor: *value = pretend_compute_capability_major(); break;
  case cudaDevAttrComputeCapabilityMinor: *value = pretend_compute_capability_minor(); break;
  case cudaDevAttrMultiProcessorCount: *value = pretend_multiprocessors(); break;
  case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
  case cudaDevAttrWarpSize: *value = 32; break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
  default: *value = 65536;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* p, int device) {
  int const physical = pretend_physical_device(device);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%s", pretend_name());
  memcpy(p->uuid.bytes, "PRETENDGPU00000", sizeof p->uuid.bytes);
  p->uuid.bytes[15] = (char)physical;
  p->pciBusID = physical + 1;
  p->major = pretend_compute_capability_major();
  p->minor = pretend_compute_capability_minor();
  p->totalGlobalMem = pretend_memory_bytes();
  p->multiProcessorCount = pretend_multiprocessors();
  p->warpSize = 32;
  p->maxThreadsPerMultiProcessor = 2048;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = INT_MAX;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->sharedMemPerBlock = 48 << 10;
  p->sharedMemPerBlockOptin = 227 << 10;
  p->sharedMemPerMultiprocessor = 228 << 10;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->l2CacheSize = 50 << 20;
  return cudaSuccess;
}
