// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/stored_json.hpp"

#include "orchestrator/store/durable.hpp"
#include "schemas/crc32c.hpp"

#include <cstdio>
#include <string>
#include <utility>

namespace plateau {

namespace {

constexpr auto checksum_key = "checksum";

std::string checksum_of(json const& document) {
  auto const text = document.dump();
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "crc32c:%08x",
                crc32c({reinterpret_cast<std::uint8_t const*>(text.data()), text.size()}));
  return checksum;
}

// Nesting is bounded while the text is read, since writing it again recurses.
json parse(std::vector<std::uint8_t> const& text) {
  auto const bounded = [](int depth, json::parse_event_t, json&) {
    if (depth > deepest_nesting) throw format_error("is nested more than 64 deep; it was damaged or edited");
    return true;
  };
  auto document = json::parse(text, bounded, false);
  if (document.is_discarded()) throw format_error("is not JSON; it was damaged or edited");
  return document;
}

void check_checksum(json document) {
  auto const found = document.find(checksum_key);
  if (found == document.end()) throw format_error("has no checksum; it was damaged or edited");
  auto const promised = std::move(*found);
  document.erase(found);
  if (promised != checksum_of(document))
    throw format_error("its checksum does not match its content; it was damaged or edited");
}

} // namespace

json with_checksum(json document) {
  document.erase(checksum_key);
  document[checksum_key] = checksum_of(document);
  return document;
}

void write_stored_json(std::filesystem::path const& path, json document) {
  write_durably(path, with_checksum(std::move(document)).dump(2) + "\n");
}

json read_stored_json(std::filesystem::path const& path, format_version const& expected) {
  auto const text = read_file(path);
  try {
    auto document = parse(text);
    check_format(document, expected);
    check_checksum(document);
    return document;
  } catch (format_error const& e) {
    throw format_error(path.string() + ": " + e.what());
  }
}

} // namespace plateau
