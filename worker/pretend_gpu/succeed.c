// SPDX-License-Identifier: Apache-2.0
// All that Torch calls and that only has to succeed. No header is included, so that none needs its
// parameters.
#define SUCCEED(name)                                                                                                  \
  int name(void);                                                                                                      \
  int name(void) { return 0; }

SUCCEED(cudaDeviceEnablePeerAccess)

SUCCEED(cudaHostRegister)
SUCCEED(cudaHostUnregister)
SUCCEED(cudaMemcpyToSymbol)
SUCCEED(cudaMemset)
SUCCEED(cudaDeviceGetDefaultMemPool)
SUCCEED(cudaMemPoolSetAttribute)
SUCCEED(cudaMemPoolSetAccess)
SUCCEED(cudaMemsetAsync)

SUCCEED(cudaStreamDestroy)
SUCCEED(cudaStreamWaitEvent)
SUCCEED(cudaStreamQuery)
SUCCEED(cudaStreamAddCallback)
SUCCEED(cudaThreadExchangeStreamCaptureMode)
SUCCEED(cudaEventQuery)
SUCCEED(cudaEventRecord)
SUCCEED(cudaEventRecordWithFlags)
SUCCEED(cudaEventSynchronize)

SUCCEED(cudaGraphLaunch)
SUCCEED(cudaGraphDestroy)
SUCCEED(cudaGraphExecDestroy)
SUCCEED(cudaGraphDebugDotPrint)

SUCCEED(cudaFuncSetAttribute)
SUCCEED(cudaLaunchKernel)
SUCCEED(cudaLaunchKernelExC)
SUCCEED(cudaLaunchCooperativeKernel)

SUCCEED(cublasSetStream_v2)
SUCCEED(cublasSetWorkspace_v2)
SUCCEED(cublasSetMathMode)
SUCCEED(cublasGetPointerMode_v2)
SUCCEED(cublasSetPointerMode_v2)
SUCCEED(cublasGemmEx)
SUCCEED(cublasGemmStridedBatchedEx)
SUCCEED(cublasSgemm_v2)
SUCCEED(cublasSgemmEx)
SUCCEED(cublasSgemmStridedBatched)
SUCCEED(cublasLtMatmul)
SUCCEED(cublasLtMatmulDescSetAttribute)
SUCCEED(cublasLtMatmulPreferenceSetAttribute)
SUCCEED(cublasLtMatrixLayoutSetAttribute)
