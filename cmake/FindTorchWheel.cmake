# SPDX-License-Identifier: Apache-2.0
# Torch from a Python environment's wheel, with the CUDA and NCCL headers and libraries that come beside it: no CUDA
# toolkit, no nvcc. (find_package(Torch) from the wheel demands a toolkit.)
#
#   PLATEAU_PYTHON   the environment's python; default: .venv/bin/python of this checkout
# Defines:
#   TorchWheel::torch   Torch, its CUDA parts, the CUDA runtime and NCCL
#   TORCH_SITE          the environment's site-packages
execute_process(COMMAND ${PLATEAU_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
  OUTPUT_VARIABLE TORCH_SITE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_path(TorchWheel_INCLUDE_DIR ATen/ATen.h PATHS ${TORCH_SITE}/torch/include NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchWheel REQUIRED_VARS TORCH_SITE TorchWheel_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "no torch wheel in ${PLATEAU_PYTHON} - script/setup installs one")

if(TorchWheel_FOUND AND NOT TARGET TorchWheel::torch)
  add_library(TorchWheel::torch INTERFACE IMPORTED)
  target_include_directories(TorchWheel::torch SYSTEM INTERFACE
    ${TORCH_SITE}/torch/include ${TORCH_SITE}/torch/include/torch/csrc/api/include
    ${TORCH_SITE}/nvidia/cu13/include ${TORCH_SITE}/nvidia/nccl/include)
  # as the wheel was built; LayerNormKernel's dispatch stub does not link without them
  target_compile_definitions(TorchWheel::torch INTERFACE HAVE_AVX2_CPU_DEFINITION HAVE_AVX512_CPU_DEFINITION)
  target_link_options(TorchWheel::torch INTERFACE -Wl,--no-as-needed) # libtorch_cuda registers itself on load
  # libtorch.so exports a std::filesystem of its own, whose remove_all() crashes: the real one has to be found first
  set(torch_libraries stdc++)
  foreach(library torch/lib/libtorch.so torch/lib/libtorch_cpu.so torch/lib/libtorch_cuda.so torch/lib/libc10.so
      torch/lib/libc10_cuda.so nvidia/cu13/lib/libcudart.so.13 nvidia/nccl/lib/libnccl.so.2)
    list(APPEND torch_libraries ${TORCH_SITE}/${library})
  endforeach()
  target_link_libraries(TorchWheel::torch INTERFACE ${torch_libraries})
  set(TORCH_RPATH ${TORCH_SITE}/torch/lib ${TORCH_SITE}/nvidia/cu13/lib ${TORCH_SITE}/nvidia/nccl/lib
    ${TORCH_SITE}/nvidia/cudnn/lib ${TORCH_SITE}/nvidia/cusparselt/lib ${TORCH_SITE}/nvidia/nvshmem/lib)
endif()
