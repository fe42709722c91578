// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/store/hdf5.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace plateau {

/// What the ends of a run.h5 say of the bytes between.
enum class run_file_bytes {
  vouched,   ///< the trailer's checksum is that of the content
  unchecked, ///< HDF5's own end is the end of the file: another program wrote it anew, without the trailer
};

/// Looks at a file of `size` bytes by its first and its last ones (at least 64 and 16, fewer if it is shorter). `crc`
/// gives the checksum of the first so many bytes. Throws format_error when it is no HDF5 file, truncated or damaged.
run_file_bytes check_run_file_bytes(std::span<std::uint8_t const> first, std::span<std::uint8_t const> last,
                                    std::uint64_t size, std::function<std::uint32_t(std::uint64_t)> const& crc);

/// What is wrong with the items of a run.h5: a phrase each, such as "eager.c2/latency_ns is missing". Its own job and
/// ranks say which groups there must be, and of which shape. Items that it does not know are ignored, as those of a
/// later minor version.
std::vector<std::string> check_run_file_items(std::map<std::string, h5::item> const& items);

/// A checked run.h5.
struct checked_run_file {
  run_file_bytes bytes;
  std::string run_id;              ///< empty when unchecked
  std::vector<std::string> faults; ///< of its items; empty when unchecked
};

/// Checks a run.h5: its bytes, and only if the trailer vouches for them, what HDF5 reads there. Throws format_error
/// with the path, input_error when it cannot be read.
checked_run_file check_run_file(std::filesystem::path const& path);

} // namespace plateau
