// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// Writes a file so that a reader, or a machine that starts again, finds either all of it or what was there
/// before: under a temporary name in the same folder, fsync, rename, fsync of the folder. Replaces an older
/// file of that name. Throws std::system_error with the path in its text; then the temporary file is gone.
void write_durably(std::filesystem::path const& path, std::span<std::uint8_t const> bytes);
void write_durably(std::filesystem::path const& path, std::string_view text);

/// The same for a content that lies in several places.
void write_durably(std::filesystem::path const& path, std::initializer_list<std::span<std::uint8_t const>> parts);

/// Adds bytes to the end of a file. Throws std::system_error with the path in its text.
void append(std::filesystem::path const& path, std::span<std::uint8_t const> bytes);

/// Gives a finished, closed file its final name, durably. Both names are in the same folder.
/// Throws std::system_error with the path in its text.
void publish(std::filesystem::path const& temporary, std::filesystem::path const& path);

/// A whole file. Throws input_error when it cannot be read.
std::vector<std::uint8_t> read_file(std::filesystem::path const& path);
std::string read_text(std::filesystem::path const& path);

/// The first and the last bytes of a file, and how many it has. A file that is shorter gives what it has.
struct file_ends {
  std::vector<std::uint8_t> first, last;
  std::uint64_t size = 0;
};

/// Throws input_error when it cannot be read.
file_ends read_ends(std::filesystem::path const& path, std::size_t first, std::size_t last);

/// The CRC-32C of a file's first `size` bytes, or of as many as there are, read piece by piece. Throws input_error when
/// it cannot be read.
std::uint32_t checksum_of_file(std::filesystem::path const& path, std::uint64_t size);

} // namespace plateau
