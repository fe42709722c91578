// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: what is asked of kernels before they are launched, and the driver's entry points.
#include <cuda_runtime_api.h>

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

// No entry point is handed out here: what Torch needs of the driver it finds in libcuda.so.1.
cudaError_t cudaGetDriverEntryPointByVersion(char const*, void** function, unsigned, unsigned long long,
                                             enum cudaDriverEntryPointQueryResult* result) {
  *function = NULL;
  if (result) *result = cudaDriverEntryPointSymbolNotFound;
  return cudaErrorInvalidValue;
}
