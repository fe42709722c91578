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

// One walk over the bytes, which believes no length beyond what is there, recurses no deeper than is allowed, and takes
// a series in one copy. (The JSON library's own reader trusts lengths, recurses without bound and goes byte by byte.)
class cbor_reader {
public:
  cbor_reader(std::uint8_t const* bytes, std::size_t size) : bytes_(bytes), size_(size) {}

  json document() {
    auto whole = item(0);
    if (at_ != size_) malformed(at_, "more bytes than one document");
    return whole;
  }

private:
  struct head {
    std::size_t start;
    int major, info;
    std::uint64_t argument;
  };

  // A byte of CBOR can become fifty of JSON, and an object is searched for each of its keys. No document of ours has
  // nearly as many: a series is one item.
  static constexpr int most_items = 1 << 22, most_keys = 4096;

  std::uint8_t const* bytes_;
  std::size_t size_, at_ = 0;
  int items_ = 0;

  json item(int depth) {
    if (depth > deepest_nesting) malformed(at_, "nested more than 64 deep");
    if (++items_ > most_items) malformed(at_, "more than 4194304 items");
    auto const h = take_head();
    switch (h.major) {
    case 0: return h.argument;
    case 1: return negative(h);
    case 2: return json::binary(take<std::vector<std::uint8_t>>(h));
    case 3: return take<std::string>(h);
    case 4: return array(h, depth);
    case 5: return object(h, depth);
    case 6: return tagged(h, depth);
    default: return simple(h);
    }
  }

  head take_head() {
    if (at_ >= size_) malformed(at_, "ends too early");
    head h{at_, bytes_[at_] >> 5, bytes_[at_] & 31, 0};
    ++at_;
    h.argument = static_cast<std::uint64_t>(h.info);
    if (h.info >= 28) malformed(h.start, "an indefinite or reserved length");
    if (h.info < 24) return h;
    auto const width = std::size_t{1} << (h.info - 24);
    if (size_ - at_ < width) malformed(h.start, "ends too early");
    h.argument = 0;
    for (std::size_t i = 0; i < width; ++i) h.argument = h.argument << 8 | bytes_[at_++];
    return h;
  }

  static json negative(head const& h) {
    if (h.argument > INT64_MAX) malformed(h.start, "an integer below 64 bits");
    return -1 - static_cast<std::int64_t>(h.argument);
  }

  template <class Bytes>
  Bytes take(head const& h) {
    if (h.argument > size_ - at_) malformed(h.start, "claims more bytes than there are");
    auto const* const from = bytes_ + at_;
    at_ += h.argument;
    return Bytes(from, bytes_ + at_);
  }

  void check_items(head const& h) const {
    if (h.argument > size_ - at_) malformed(h.start, "claims more items than there are bytes");
  }

  json array(head const& h, int depth) {
    check_items(h);
    json::array_t items;
    for (std::uint64_t i = 0; i < h.argument; ++i) items.push_back(item(depth + 1));
    return items;
  }

  json object(head const& h, int depth) {
    check_items(h);
    if (h.argument > most_keys) malformed(h.start, "an object of more than 4096 keys");
    auto out = json::object();
    for (std::uint64_t i = 0; i < h.argument; ++i) {
      auto const key = take_head();
      if (key.major != 3) malformed(key.start, "a key that is no text");
      auto name = take<std::string>(key);
      out[std::move(name)] = item(depth + 1);
    }
    return out;
  }

  // JSON has room for the tag of a byte string; other tags only annotate what they enclose.
  json tagged(head const& h, int depth) {
    auto value = item(depth + 1);
    if (value.is_binary()) value.get_binary().set_subtype(h.argument);
    return value;
  }

  static json simple(head const& h) {
    switch (h.info) {
    case 20: return false;
    case 21: return true;
    case 22: return nullptr;
    case 26: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(h.argument)));
    case 27: return std::bit_cast<double>(h.argument);
    default: malformed(h.start, "a value that JSON lacks, or a number of half precision");
    }
  }
};

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

json from_cbor(std::uint8_t const* bytes, std::size_t size) { return cbor_reader(bytes, size).document(); }

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
