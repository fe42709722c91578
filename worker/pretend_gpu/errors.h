// SPDX-License-Identifier: Apache-2.0
// The error that stays, as after an illegal access in a kernel.
#pragma once

void pretend_break_the_devices(void); // for the rest of this process
