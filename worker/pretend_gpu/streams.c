// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime: streams, events and graphs. All work is done at once, so every wait returns; a graph is
// one node.
#include <cuda_runtime_api.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static atomic_uintptr_t last_stream = 0x1000;
static atomic_ullong last_capture = 0;
static _Thread_local cudaStream_t capturing = NULL;
static _Thread_local unsigned long long capture_id = 0;

static cudaError_t new_stream(cudaStream_t* stream) {
  uintptr_t const step = 0x100;
  *stream = (cudaStream_t)(atomic_fetch_add(&last_stream, step) + step);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return new_stream(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return new_stream(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaPeekAtLastError(); }

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  return capturing && stream == capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status) {
  *status = status_of(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, cudaGraphNode_t const**, cudaGraphEdgeData const**, size_t*) {
  *status = status_of(stream);
  if (id) *id = capture_id;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode) {
  capturing = stream;
  capture_id = atomic_fetch_add(&last_capture, 1) + 1;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  capturing = NULL;
  *graph = (cudaGraph_t)0x5000;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t, unsigned long long) {
  *executable = (cudaGraphExec_t)0x6000;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = malloc(8);
  return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}
