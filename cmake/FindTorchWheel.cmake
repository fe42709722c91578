# SPDX-License-Identifier: Apache-2.0
# Torch from a Python environment's wheel, with the CUDA and NCCL headers and libraries that come beside it: no CUDA
# toolkit, no nvcc. (find_package(Torch) from the wheel demands a toolkit.)
#
#   PLATEAU_PYTHON   the environment's python; default: .venv/bin/python of this checkout
#   TORCH_SITE       if given: a folder laid out as site-packages is, for a Torch that is no wheel; docs/slurm.md makes one
#   PLATEAU_CUDA     OFF, or a wheel without CUDA, leaves the CUDA parts out
# Defines:
#   TorchWheel::torch   Torch; its CUDA parts, the CUDA runtime, cuBLASLt and NCCL if PLATEAU_HAS_CUDA
#   TORCH_SITE          the environment's site-packages, unless it was given
#   PLATEAU_HAS_CUDA    whether the CUDA parts are built
if(NOT TORCH_SITE)
  execute_process(COMMAND ${PLATEAU_PYTHON} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
    OUTPUT_VARIABLE TORCH_SITE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_path(TorchWheel_INCLUDE_DIR ATen/ATen.h PATHS ${TORCH_SITE}/torch/include NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TorchWheel REQUIRED_VARS TORCH_SITE TorchWheel_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "no torch wheel in ${PLATEAU_PYTHON} - script/setup installs one")

option(PLATEAU_CUDA "Build the CUDA device; needs a torch wheel with CUDA, but no toolkit" ON)
set(PLATEAU_HAS_CUDA OFF)
if(NOT PLATEAU_CUDA)
  message(STATUS "PLATEAU_CUDA is OFF: plateau-worker is built for the CPU alone")
elseif(EXISTS ${TORCH_SITE}/torch/lib/libtorch_cuda.so)
  set(PLATEAU_HAS_CUDA ON)
elseif(TorchWheel_FOUND)
  message(STATUS "The torch wheel in ${TORCH_SITE} has no CUDA: plateau-worker is built for the CPU alone. For GPUs, "
    "install the torch wheel with CUDA (script/setup does) and configure again")
endif()

if(TorchWheel_FOUND AND NOT TARGET TorchWheel::torch)
  set(torch_includes torch/include torch/include/torch/csrc/api/include)
  set(torch_libraries torch/lib/libtorch.so torch/lib/libtorch_cpu.so torch/lib/libc10.so)
  set(torch_library_folders torch/lib)
  if(PLATEAU_HAS_CUDA)
    list(APPEND torch_includes nvidia/cu13/include nvidia/nccl/include)
    list(APPEND torch_libraries torch/lib/libtorch_cuda.so torch/lib/libc10_cuda.so nvidia/cu13/lib/libcudart.so.13
      nvidia/cu13/lib/libcublasLt.so.13 nvidia/nccl/lib/libnccl.so.2)
    list(APPEND torch_library_folders nvidia/cu13/lib nvidia/nccl/lib nvidia/cudnn/lib nvidia/cusparselt/lib
      nvidia/nvshmem/lib)
  endif()
  foreach(list torch_includes torch_libraries torch_library_folders)
    list(TRANSFORM ${list} PREPEND ${TORCH_SITE}/)
  endforeach()
  add_library(TorchWheel::torch INTERFACE IMPORTED)
  target_include_directories(TorchWheel::torch SYSTEM INTERFACE ${torch_includes})
  # as the wheel was built; LayerNormKernel's dispatch stub does not link without them
  target_compile_definitions(TorchWheel::torch INTERFACE HAVE_AVX2_CPU_DEFINITION HAVE_AVX512_CPU_DEFINITION)
  target_link_options(TorchWheel::torch INTERFACE -Wl,--no-as-needed) # libtorch_cuda registers itself on load
  # libtorch.so exports a std::filesystem of its own, whose remove_all() crashes: the real one has to be found first
  target_link_libraries(TorchWheel::torch INTERFACE stdc++ ${torch_libraries})
  set(TORCH_RPATH ${torch_library_folders})
endif()
