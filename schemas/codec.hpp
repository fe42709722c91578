// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/error.hpp"
#include "schemas/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Structs to and from JSON, each described once:
///
///     template <class Visit> void describe(case_result& x, Visit&& visit) { visit("rank", x.rank); ... }
///
/// encode() and decode() both read that description. A vector of int64 is an RFC 8746 typed array (binary
/// with a tag), so that a million samples cost eight bytes each. A key that is absent is an error, unless its
/// member is optional; keys that are not described are ignored, so that a newer minor version can be read.
namespace plateau {

/// RFC 8746, table 1: signed 64-bit integers, little endian.
inline constexpr std::uint64_t typed_array_sint64_le = 79;

/// Writes the bytes of `values` as a typed array.
json encode_typed_array(std::vector<std::int64_t> const& values);

/// Reads what encode_typed_array wrote. Throws format_error, naming `where`, when it is something else.
std::vector<std::int64_t> decode_typed_array(json const& from, std::string const& where);

/// A document as CBOR (RFC 8949).
std::vector<std::uint8_t> to_cbor(json const& document);

/// Reads one CBOR document that fills `bytes` exactly. Throws format_error when it is malformed, nested more
/// than 64 deep, or claims more than it holds: nothing is allocated on the word of a damaged length.
json from_cbor(std::uint8_t const* bytes, std::size_t size);
json from_cbor(std::vector<std::uint8_t> const& bytes);

/// Whether every byte of `text` belongs to well-formed UTF-8: JSON cannot hold other text.
bool is_utf8(std::string const& text);

/// `text` with everything that is not UTF-8 replaced by U+FFFD, such as half a letter where a log was cut.
std::string as_utf8(std::string const& text);

/// An enumeration names its values in a function `names(E)`: a table of {value, name}.
template <class Enum>
std::string_view name_of(Enum value) {
  for (auto const& [known, name] : names(value))
    if (known == value) return name;
  return "?";
}

template <class Enum>
std::optional<Enum> value_of(std::string_view text) {
  for (auto const& [known, name] : names(Enum{}))
    if (name == text) return known;
  return std::nullopt;
}

namespace codec {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
json encode(T const& x);
template <class T>
void decode(json const& from, T& x, std::string const& where);

struct writer {
  json out = json::object();
  template <class T>
  void operator()(char const* key, T const& x) {
    if constexpr (is_optional<T>) {
      if (x) out[key] = codec::encode(*x);
    } else {
      out[key] = codec::encode(x);
    }
  }
};

struct reader {
  json const& from;
  std::string const& where;
  template <class T>
  void operator()(char const* key, T& x) {
    auto const found = from.find(key);
    if constexpr (is_optional<T>) {
      if (found == from.end() || found->is_null()) return void(x = std::nullopt);
      codec::decode(*found, x.emplace(), where + "/" + key);
    } else {
      if (found == from.end()) throw format_error(where + "/" + key + ": missing");
      codec::decode(*found, x, where + "/" + key);
    }
  }
};

template <class T>
json encode(T const& x) {
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    return encode_typed_array(x);
  } else if constexpr (is_vector<T>) {
    json out = json::array();
    for (auto const& item : x) out.push_back(codec::encode(item));
    return out;
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    json out = json::object();
    for (auto const& [key, value] : x) out[as_utf8(key)] = as_utf8(value);
    return out;
  } else if constexpr (std::is_enum_v<T>) {
    return json(std::string(name_of(x)));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return json(as_utf8(x));
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, json>) {
    return json(x);
  } else {
    writer w;
    describe(const_cast<T&>(x), w); // a writer only reads
    return std::move(w.out);
  }
}

[[noreturn]] void wrong_type(std::string const& where, char const* needed, json const& got);

template <class T>
void decode(json const& from, T& x, std::string const& where) {
  if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    x = decode_typed_array(from, where);
  } else if constexpr (is_vector<T>) {
    if (!from.is_array()) wrong_type(where, "an array", from);
    x.clear();
    for (auto const& item : from) {
      auto const at = where + "/" + std::to_string(x.size());
      codec::decode(item, x.emplace_back(), at);
    }
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    if (!from.is_object()) wrong_type(where, "an object", from);
    x.clear();
    for (auto const& [key, value] : from.items()) codec::decode(value, x[key], where + "/" + key);
  } else if constexpr (std::is_same_v<T, json>) {
    x = from;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!from.is_string() || !is_utf8(from.get_ref<std::string const&>())) wrong_type(where, "a text in UTF-8", from);
    x = from.get<std::string>();
  } else if constexpr (std::is_enum_v<T>) {
    auto const value = from.is_string() ? value_of<T>(from.get<std::string>()) : std::nullopt;
    if (!value) wrong_type(where, "one of its names", from);
    x = *value;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!from.is_boolean()) wrong_type(where, "true or false", from);
    x = from.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!from.is_number_integer() || (from.is_number_unsigned() && from.get<std::uint64_t>() > INT64_MAX))
      wrong_type(where, "a 64-bit integer", from);
    auto const value = from.get<std::int64_t>();
    if (static_cast<std::int64_t>(static_cast<T>(value)) != value) wrong_type(where, "a smaller integer", from);
    x = static_cast<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!from.is_number()) wrong_type(where, "a number", from);
    x = from.get<T>();
  } else {
    if (!from.is_object()) wrong_type(where, "an object", from);
    reader r{from, where};
    describe(x, r);
  }
}

} // namespace codec

/// A value as a message shows it: JSON, cut to a readable length.
std::string shown(json const& value);

/// A described struct as JSON.
template <class T>
json encode(T const& x) {
  return codec::encode(x);
}

/// A described struct from JSON. Throws format_error with the pointer of the first thing that is wrong.
template <class T>
T decode(json const& from) {
  T x{};
  codec::decode(from, x, "");
  return x;
}

/// The name and version of a stored format, written as "NAME/MAJOR.MINOR" under the key "schema".
struct format_version {
  std::string_view name;
  int major = 1, minor = 0;
  std::string text() const;
};

/// Throws format_error unless `document` says that it is `expected`, of the same major version or an older
/// one.
void check_format(json const& document, format_version const& expected);

} // namespace plateau
