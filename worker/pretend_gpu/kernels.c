// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: what is asked of kernels before they are launched, and the driver's entry points.
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <string.h>

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attributes, void const*) {
  memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void const*, int, size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

// Not in the public headers; the launch macros call it.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* function);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* function) {
  *kernel = (cudaKernel_t)function;
  return cudaSuccess;
}

// Those of the driver that need the devices' memory are in this library, and so found first.
cudaError_t cudaGetDriverEntryPointByVersion(char const* name, void** function, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* result) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (!*function) *function = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : cudaErrorInvalidValue;
}
