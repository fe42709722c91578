// SPDX-License-Identifier: Apache-2.0
// What the pretend devices are, from the environment: see README.md.
#pragma once

#include <stddef.h>

enum { pretend_most_devices = 64 };

int pretend_compute_capability_major(void);
size_t pretend_memory_bytes(void); // of each device

int pretend_visible_devices(void);
int pretend_physical_device(int visible); // its number in the machine; `visible` is below pretend_visible_devices()
