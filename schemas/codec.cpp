// SPDX-License-Identifier: Apache-2.0
#include "schemas/codec.hpp"

#include <bit>
#include <charconv>
#include <cstring>

namespace plateau {

static_assert(std::endian::native == std::endian::little, "typed arrays are written as they lie in memory");

namespace {

[[noreturn]] void malformed(std::size_t at, char const* what) {
  throw format_error("not valid CBOR at byte " + std::to_string(at) + ": " + what);
}

// The JSON library's parser recurses and trusts lengths, so the structure is walked first, without recursion.
void check_structure(std::uint8_t const* bytes, std::size_t size) {
  std::uint64_t open[deepest_nesting + 1] = {1}; // items still to come on each level
  int depth = 0;
  std::size_t at = 0;
  while (true) {
    while (open[depth] == 0) {
      if (depth-- == 0) {
        if (at != size) malformed(at, "more bytes than one document");
        return;
      }
    }
    --open[depth];
    if (at >= size) malformed(at, "ends too early");
    auto const start = at;
    int const major = bytes[at] >> 5, info = bytes[at] & 31;
    ++at;
    std::uint64_t argument = static_cast<std::uint64_t>(info);
    if (info >= 28) malformed(start, "an indefinite or reserved length");
    if (info >= 24) {
      auto const width = std::size_t{1} << (info - 24);
      if (size - at < width) malformed(start, "ends too early");
      argument = 0;
      for (std::size_t i = 0; i < width; ++i) argument = argument << 8 | bytes[at++];
    }
    auto const nest = [&](std::uint64_t items) {
      if (items > size - at) malformed(start, "claims more items than there are bytes");
      if (++depth > deepest_nesting) malformed(start, "nested more than 64 deep");
      open[depth] = items;
    };
    switch (major) {
    case 1:
      if (argument > INT64_MAX) malformed(start, "an integer below 64 bits");
      break;
    case 2:
    case 3:
      if (argument > size - at) malformed(start, "claims more bytes than there are");
      at += argument;
      break;
    case 4: nest(argument); break;
    case 5:
      if (argument > size) malformed(start, "claims more items than there are bytes");
      nest(argument * 2);
      break;
    case 6: nest(1); break;
    default: break; // numbers and simple values are their head alone
    }
  }
}

} // namespace

json encode_typed_array(std::vector<std::int64_t> const& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(std::int64_t));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return json::binary(std::move(bytes), typed_array_sint64_le);
}

std::vector<std::int64_t> decode_typed_array(json const& from, std::string const& where) {
  if (!from.is_binary() || !from.get_binary().has_subtype() || from.get_binary().subtype() != typed_array_sint64_le ||
      from.get_binary().size() % sizeof(std::int64_t) != 0)
    throw format_error(where + ": needs a typed array of signed 64-bit integers, little endian (CBOR tag 79)");
  auto const& bytes = from.get_binary();
  std::vector<std::int64_t> values(bytes.size() / sizeof(std::int64_t));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::string as_utf8(std::string const& text) {
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

bool is_utf8(std::string const& text) { return as_utf8(text) == text; }

std::vector<std::uint8_t> to_cbor(json const& document) { return json::to_cbor(document); }

json from_cbor(std::uint8_t const* bytes, std::size_t size) {
  check_structure(bytes, size);
  try {
    return json::from_cbor(bytes, bytes + size, true, true, json::cbor_tag_handler_t::store);
  } catch (json::exception const& e) {
    throw format_error(std::string("not valid CBOR: ") + e.what());
  }
}

json from_cbor(std::vector<std::uint8_t> const& bytes) { return from_cbor(bytes.data(), bytes.size()); }

std::string shown(json const& value) {
  auto text = value.is_binary() ? std::string("bytes") : value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

void codec::wrong_type(std::string const& where, char const* needed, json const& got) {
  throw format_error((where.empty() ? "the document" : where) + ": " + shown(got) + "; needs " + needed);
}

std::string format_version::text() const {
  return std::string(name) + "/" + std::to_string(major) + "." + std::to_string(minor);
}

void check_format(json const& document, format_version const& expected) {
  auto const found = document.is_object() ? document.find("schema") : document.end();
  if (!document.is_object() || found == document.end() || !found->is_string())
    throw format_error("says no \"schema\"; needs " + expected.text());
  auto const text = found->get<std::string>();
  auto const slash = text.find('/');
  int major = 0;
  auto const digits = text.data() + (slash == std::string::npos ? text.size() : slash + 1);
  auto const [end, error] = std::from_chars(digits, text.data() + text.size(), major);
  if (text.substr(0, slash) != expected.name || error != std::errc() || major < 1 || *end != '.')
    throw format_error("is \"" + text + "\"; needs " + expected.text());
  if (major > expected.major)
    throw format_error("is " + text + ", from a newer plateau; this one reads up to " + expected.text() +
                       "; update plateau to read it");
}

} // namespace plateau
