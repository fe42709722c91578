// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library, libnvidia-ml.so.1. Without PRETEND_NVML it knows none of the devices, and has the answers
// that Torch asks for itself when it runs out of memory; the machine's own library, where there is one, would make that
// an internal error, since it knows no pretend GPU. PRETEND_NVML has words, separated by commas, each for every device or,
// with @N, for the one of that number in the machine; an empty text makes them known and healthy.
//
//     foreign      two other processes have memory on it, one of which does not say how much
//     hidden       the worker is not in the list of processes, as in a container
//     held_down    half of all time its clocks are held down by power
//     uncounted    it does not count how long its clocks are held down, but says that a power cap does it now
//     silent       it tells nothing
//     mig          it is a part of a GPU
//     broken       the library does not start
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { success = 0, not_supported = 3, not_found = 6, too_small = 7, driver_not_loaded = 9 }; // nvmlReturn_t

struct process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

struct violation {
  unsigned long long reference_us, violation_ns;
};

static bool scripted(char const* what, int gpu) {
  char const* const script = getenv("PRETEND_NVML");
  char here[64], copy[256], *rest = NULL;
  snprintf(here, sizeof here, "%s@%d", what, gpu);
  snprintf(copy, sizeof copy, "%s", script != NULL ? script : "");
  for (char* word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
    if (strcmp(word, what) == 0 || strcmp(word, here) == 0) return true;
  return false;
}

// A handle is the UUID's last byte and one, so that none is null; the whole GPU of a part is a hundred further.
static int number_of(void* handle) { return (int)((uintptr_t)handle - 1) % 100; }
static bool is_whole(void* handle) { return (uintptr_t)handle > 100; }

int nvmlInit_v2(void) { return scripted("broken", -1) ? driver_not_loaded : success; }
char const* nvmlErrorString(int result) {
  return result == driver_not_loaded ? "Driver Not Loaded" : "some other error";
}

static int text(char* out, unsigned size, char const* what) {
  snprintf(out, size, "%s", what);
  return success;
}
int nvmlSystemGetNVMLVersion(char* out, unsigned size) { return text(out, size, "13.580.00"); }
int nvmlSystemGetDriverVersion(char* out, unsigned size) { return text(out, size, "580.00"); }

int nvmlDeviceGetHandleByUUID(char const* uuid, void** handle) {
  int const gpu = (int)strtol(uuid + strlen(uuid) - 2, NULL, 16);
  if (getenv("PRETEND_NVML") == NULL || scripted("mig", gpu) != (strncmp(uuid, "MIG-", 4) == 0)) return not_found;
  *handle = (void*)(uintptr_t)(gpu + 1);
  return success;
}

int nvmlDeviceIsMigDeviceHandle(void* handle, unsigned* mig) {
  *mig = scripted("mig", number_of(handle)) && !is_whole(handle);
  return success;
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void* handle, void** whole) {
  if (!scripted("mig", number_of(handle))) return not_supported;
  *whole = (void*)((uintptr_t)handle + 100);
  return success;
}

static int value(void* handle, unsigned* out, unsigned what) {
  bool const silent = scripted("silent", number_of(handle));
  bool const only_of_the_whole = scripted("mig", number_of(handle)) && !is_whole(handle);
  if (silent || only_of_the_whole) return not_supported;
  *out = what;
  return success;
}
int nvmlDeviceGetClockInfo(void* handle, int type, unsigned* mhz) { return value(handle, mhz, type == 1 ? 1980 : 3201); }
int nvmlDeviceGetPowerUsage(void* handle, unsigned* mw) { return value(handle, mw, 689000); }
int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* c) { return value(handle, c, sensor == 0 ? 61 : 0); }

int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* bits) {
  *bits = scripted("uncounted", number_of(handle)) ? 0x4 | 0x40 : 0x1;
  return scripted("silent", number_of(handle)) ? not_supported : success;
}

int nvmlDeviceGetViolationStatus(void* handle, int policy, struct violation* v) {
  int const gpu = number_of(handle);
  if (scripted("silent", gpu) || scripted("uncounted", gpu)) return not_supported;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  v->violation_ns = policy == 0 && scripted("held_down", gpu)
                        ? ((unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec) / 2
                        : 0;
  return success;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, struct process* out) {
  int const gpu = number_of(handle);
  if (scripted("silent", gpu)) return not_supported;
  struct process all[3] = {{(unsigned)getpid(), 1ull << 30, 0, 0}};
  unsigned found = scripted("hidden", gpu) ? 0 : 1;
  if (scripted("foreign", gpu)) {
    all[found++] = (struct process){4242, 2ull << 30, 0, 0};
    all[found++] = (struct process){4343, ~0ull, 0, 0};
  }
  if (*count < found) return *count = found, too_small;
  memcpy(out, all, found * sizeof *all);
  *count = found;
  return success;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void*, unsigned* count, struct process*) { return *count = 0, success; }

// What Torch asks itself.
int nvmlDeviceGetHandleByPciBusId_v2(char const*, void** handle) { return *handle = (void*)1, success; }
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) { return *count = 0, success; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return *version = 13000, success; }
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, void*) { return not_supported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) { return not_supported; }
int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return not_supported; }
