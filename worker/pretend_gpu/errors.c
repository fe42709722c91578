// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: the error that is asked for after a call, or by waiting for the device.
#include "errors.h"

#include <cuda_runtime_api.h>

#include <stdatomic.h>

static atomic_int broken = 0;

void pretend_break_the_devices(void) { atomic_store(&broken, 1); }

cudaError_t cudaPeekAtLastError(void) { return atomic_load(&broken) ? cudaErrorIllegalAddress : cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaPeekAtLastError(); }
cudaError_t cudaDeviceSynchronize(void) { return cudaPeekAtLastError(); }
