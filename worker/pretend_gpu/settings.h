// SPDX-License-Identifier: Apache-2.0
// What the pretend devices are, from the environment: see README.md.
#pragma once

#include <stddef.h>

enum { pretend_most_devices = 64 };

char const* pretend_name(void);
int pretend_compute_capability_major(void);
int pretend_compute_capability_minor(void);
int pretend_multiprocessors(void);
size_t pretend_memory_bytes(void);   // of each device
int pretend_waits_until_broken(void); // streams are waited for that often, then every device is broken; -1: never

int pretend_visible_devices(void);
int pretend_physical_device(int visible); // its number in the machine; `visible` is below pretend_visible_devices()
