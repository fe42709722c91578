// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plateau {

/// A number as people read it: three digits, more before the point.
std::string number_text(double x);

/// "1.5 MiB", "-3 KiB", "0 B".
std::string bytes_text(double bytes);

} // namespace plateau
