// SPDX-License-Identifier: Apache-2.0
// What the pretend devices are, from the environment: see README.md.
#pragma once

#include <stddef.h>

enum { pretend_most_devices = 64 };

char const* pretend_name(void);
int pretend_compute_capability_major(void);
int pretend_compute_capability_minor(void);
int pretend_multiprocessors(void);
size_t pretend_memory_bytes(void);         // of each device
char const* pretend_breaking_kernel(void); // a kernel with this in its name breaks every device; NULL: none does

int pretend_visible_devices(void);
int pretend_physical_device(int visible); // its number in the machine; `visible` is below pretend_visible_devices()
