// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

/// The last 16 bytes of a binary file that plateau keeps. They vouch for all that is before them: a name of four
/// letters, the CRC-32C of the content (32 bits, little endian), its length in bytes (64 bits, little endian).
namespace plateau {

inline constexpr std::size_t trailer_size = 16;
using trailer = std::array<std::uint8_t, trailer_size>;

/// The trailer of a content of `length` bytes. `name` has four letters.
trailer trailer_of(std::string_view name, std::uint32_t crc, std::uint64_t length);

/// Whether a file's last bytes (fewer than 16 if it is that short) are a trailer of that name.
bool is_trailer(std::span<std::uint8_t const> last, std::string_view name);

/// Throws format_error unless a trailer vouches for a content of that checksum and length.
void check_trailer(std::span<std::uint8_t const, trailer_size> end, std::uint32_t crc, std::uint64_t length);

} // namespace plateau
