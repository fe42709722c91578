// SPDX-License-Identifier: Apache-2.0
// The driver: what has to answer sensibly. make_driver.py adds a stub for every other entry point that cuda.h
// names; cuda.h itself is not included, since its macros rename entry points.
#include "settings.h"

#include <stddef.h>

typedef int result; // CUresult; 0 is success

static void* const some_context = (void*)0x1;
static void* const some_module = (void*)0x77;
static void* const some_function = (void*)0x78;

static result answer(void** out, void* value) {
  *out = value;
  return 0;
}

static result answer_number(int* out, int value) {
  *out = value;
  return 0;
}

result cuInit(unsigned) { return 0; }
result cuDriverGetVersion(int* version) { return answer_number(version, 13000); }
result cuCtxGetCurrent(void** context) { return answer(context, some_context); }
result cuCtxGetDevice(int* device) { return answer_number(device, 0); }
result cuDeviceGet(int* device, int ordinal) { return answer_number(device, ordinal); }
result cuDeviceGetCount(int* count) { return answer_number(count, pretend_visible_devices()); }
result cuDevicePrimaryCtxRetain(void** context, int) { return answer(context, some_context); }

result cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  return answer_number(active, 1);
}

enum attribute { // of CUdevice_attribute
  shared_memory_per_block = 8,
  warp_size = 10,
  registers_per_block = 12,
  multiprocessors = 16,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  shared_memory_per_block_optin = 97,
};

result cuDeviceGetAttribute(int* value, enum attribute attribute, int) {
  switch (attribute) {
  case shared_memory_per_block: return answer_number(value, 48 << 10);
  case warp_size: return answer_number(value, 32);
  case registers_per_block: return answer_number(value, 65536);
  case multiprocessors: return answer_number(value, pretend_multiprocessors());
  case compute_capability_major: return answer_number(value, pretend_compute_capability_major());
  case compute_capability_minor: return answer_number(value, pretend_compute_capability_minor());
  case shared_memory_per_block_optin: return answer_number(value, 227 << 10);
  }
  return answer_number(value, 1024);
}

static result some_text(char const** text) {
  *text = "pretend";
  return 0;
}

result cuGetErrorString(result, char const** text) { return some_text(text); }
result cuGetErrorName(result, char const** text) { return some_text(text); }

result cuModuleLoad(void** module, char const*) { return answer(module, some_module); }
result cuModuleLoadData(void** module, void const*) { return answer(module, some_module); }
result cuModuleLoadDataEx(void** module, void const*, unsigned, void*, void*) { return answer(module, some_module); }
result cuModuleGetFunction(void** function, void*, char const*) { return answer(function, some_function); }

result cuFuncGetAttribute(int* value, int attribute, void*) { // attribute 0: threads per block
  return answer_number(value, attribute == 0 ? 1024 : 0);
}
result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, size_t) { return answer_number(blocks, 2); }
result cuOccupancyMaxActiveClusters(int* clusters, void*, void*) { return answer_number(clusters, 1); }
result cuPointerGetAttribute(void* out, int, unsigned long long p) { return answer(out, (void*)p); }
