// SPDX-License-Identifier: Apache-2.0
// The devices' memory: bytes that are in use, and addresses, which are made up. Thread-safe.
#pragma once

#include <stddef.h>

int pretend_take_bytes(int device, size_t bytes); // 0: the device has not as many left
void pretend_return_bytes(int device, size_t bytes);

void* pretend_reserve_addresses(int device, size_t bytes); // ascending, never given out twice; NULL: none are left
int pretend_release_addresses(void* first, size_t* bytes);  // what was reserved there, and the device; -1: nothing was
