// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace plateau {

/// CRC-32C (Castagnoli) as in RFC 3720. `before` is the checksum of the bytes that come before these.
std::uint32_t crc32c(std::span<std::uint8_t const> bytes, std::uint32_t before = 0);

} // namespace plateau
