// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/raw_result.hpp"

#include "orchestrator/store/durable.hpp"
#include "schemas/codec.hpp"
#include "schemas/crc32c.hpp"

#include <array>
#include <cstring>
#include <string>

namespace plateau {

namespace {

constexpr std::array<std::uint8_t, 4> magic{'P', 'L', 'R', 'R'};
constexpr std::size_t trailer_size = 16;
using trailer = std::array<std::uint8_t, trailer_size>;

template <class Integer>
void put_little_endian(std::uint8_t* to, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i) & 0xff);
}

template <class Integer>
Integer take_little_endian(std::uint8_t const* from) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value |= static_cast<Integer>(from[i]) << (8 * i);
  return value;
}

trailer trailer_of(std::span<std::uint8_t const> cbor) {
  trailer end{};
  std::memcpy(end.data(), magic.data(), magic.size());
  put_little_endian<std::uint32_t>(end.data() + 4, crc32c(cbor));
  put_little_endian<std::uint64_t>(end.data() + 8, cbor.size());
  return end;
}

// The CBOR of a whole file, once its trailer vouches for it.
std::span<std::uint8_t const> checked_cbor(std::span<std::uint8_t const> file) {
  if (file.size() < trailer_size || std::memcmp(file.last(trailer_size).data(), magic.data(), magic.size()) != 0)
    throw format_error("is truncated, or no raw result: it does not end in a trailer");
  auto const cbor = file.first(file.size() - trailer_size);
  auto const end = file.last(trailer_size).data();
  auto const length = take_little_endian<std::uint64_t>(end + 8);
  if (length != cbor.size())
    throw format_error("is truncated: its trailer says " + std::to_string(length) + " bytes, there are " +
                       std::to_string(cbor.size()));
  if (take_little_endian<std::uint32_t>(end + 4) != crc32c(cbor))
    throw format_error("is damaged: its checksum does not match its content");
  return cbor;
}

void check_name(case_result const& result, std::filesystem::path const& path) {
  run_folder const same_folder{path.parent_path().parent_path().parent_path()};
  if (same_folder.raw_result(result.id, result.rank).lexically_normal() != path.lexically_normal())
    throw format_error("holds case " + result.id.text() + " of rank " + std::to_string(result.rank) +
                       ", not what its name says; it was moved or renamed");
}

} // namespace

std::vector<std::uint8_t> encode_raw_result(case_result const& result) { return to_cbor(encode(result)); }

void write_raw_result(run_folder const& folder, case_id const& id, std::int64_t rank,
                      std::span<std::uint8_t const> cbor) {
  auto const path = folder.raw_result(id, rank);
  std::filesystem::create_directories(path.parent_path());
  auto const end = trailer_of(cbor);
  write_durably(path, {cbor, end});
}

case_result read_raw_result(std::filesystem::path const& path) {
  auto const file = read_file(path);
  try {
    auto const cbor = checked_cbor(file);
    auto result = read_case_result(from_cbor(cbor.data(), cbor.size()));
    check_name(result, path);
    return result;
  } catch (format_error const& e) {
    throw format_error(path.string() + ": " + e.what());
  }
}

} // namespace plateau
