// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(char const* variable, int otherwise) {
  char const* const text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

char const* pretend_name(void) {
  char const* const text = getenv("PRETEND_NAME");
  return text ? text : "pretend GPU";
}

int pretend_compute_capability_major(void) { return number("PRETEND_MAJOR", 9); }
int pretend_compute_capability_minor(void) { return number("PRETEND_MINOR", 0); }
int pretend_multiprocessors(void) { return number("PRETEND_SMS", 132); }
size_t pretend_memory_bytes(void) { return (size_t)number("PRETEND_MIB", 140 << 10) << 20; }
char const* pretend_breaking_kernel(void) { return getenv("PRETEND_BREAKS_AT"); }

static pthread_once_t looked = PTHREAD_ONCE_INIT;
static int physical[pretend_most_devices];
static int visible = 0;

// As CUDA does: the list counts up to its first entry that is no device.
static void read_list(char const* list, int total) {
  char copy[1024];
  snprintf(copy, sizeof copy, "%s", list);
  char* rest = NULL;
  for (char* entry = strtok_r(copy, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
    int const device = atoi(entry);
    if (device < 0 || device >= total || visible == pretend_most_devices) return;
    physical[visible++] = device;
  }
}

static void look(void) {
  int total = number("PRETEND_DEVICES", 1);
  if (total > pretend_most_devices) total = pretend_most_devices;
  char const* const list = getenv("CUDA_VISIBLE_DEVICES");
  if (list) return read_list(list, total);
  for (; visible < total; ++visible) physical[visible] = visible;
}

int pretend_visible_devices(void) {
  pthread_once(&looked, look);
  return visible;
}

int pretend_physical_device(int device) {
  pthread_once(&looked, look);
  return physical[device];
}
