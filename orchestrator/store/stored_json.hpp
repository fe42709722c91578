// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/codec.hpp"
#include "schemas/json.hpp"

#include <filesystem>

/// The JSON files of a run folder: run.json, outcome.json, summary.json. Their last key, "checksum", vouches for the
/// rest: the CRC-32C of the document without it, as compact text.
namespace plateau {

/// The document with its checksum, in the place of an older one.
json with_checksum(json document);

/// Writes a document, its checksum added. Throws std::system_error.
void write_stored_json(std::filesystem::path const& path, json document);

/// Reads one. Throws format_error, with the path and one sentence, when it is truncated, damaged, edited, of another
/// format or of a newer major version; input_error when it cannot be read.
json read_stored_json(std::filesystem::path const& path, format_version const& expected);

/// The same, decoded into the struct that it describes.
template <class T>
T read_stored(std::filesystem::path const& path, format_version const& expected) {
  auto const document = read_stored_json(path, expected);
  try {
    return decode<T>(document);
  } catch (format_error const& e) {
    throw format_error(path.string() + ": " + e.what());
  }
}

} // namespace plateau
