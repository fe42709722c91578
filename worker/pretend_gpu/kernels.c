// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: what is asked of kernels before they are launched, their launch, and the driver's entry points.
#include "errors.h"
#include "settings.h"

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

// The kernels that break the devices: each of a program is registered by its name, one for each type that it is made for.
enum { most_breaking = 256 };
static void const* breaking[most_breaking];
static int breaking_count = 0;

void __cudaRegisterFunction(void** program, char const* function, char*, char const* name, int, void*, void*, void*,
                            void*, int*);
void __cudaRegisterFunction(void**, char const* function, char*, char const* name, int, void*, void*, void*, void*,
                            int*) {
  char const* const text = pretend_breaking_kernel();
  if (text && strstr(name, text) && breaking_count < most_breaking) breaking[breaking_count++] = function;
}

// What else it is given does not matter, since nothing is computed.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel) {
  for (int i = 0; i < breaking_count; ++i)
    if ((void const*)kernel == breaking[i]) pretend_break_the_devices();
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
