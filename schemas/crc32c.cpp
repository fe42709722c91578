// SPDX-License-Identifier: Apache-2.0
#include "schemas/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace plateau {

static_assert(std::endian::native == std::endian::little, "eight bytes are taken as they lie in memory");

namespace {

using table = std::array<std::uint32_t, 256>;

// tables[k][b]: what byte b contributes when k more bytes follow it. Eight bytes are then taken in one step.
constexpr std::array<table, 8> make_tables() {
  constexpr std::uint32_t polynomial = 0x82f63b78; // reflected
  std::array<table, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

constexpr auto tables = make_tables();

using checksum = std::uint32_t (*)(std::span<std::uint8_t const>, std::uint32_t);

#ifdef __x86_64__
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(std::span<std::uint8_t const> bytes,
                                                              std::uint32_t before) {
  std::uint64_t crc = ~before;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes.data(), 8);
    crc = __builtin_ia32_crc32di(crc, eight);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (auto const byte : bytes) rest = __builtin_ia32_crc32qi(rest, byte);
  return ~rest;
}

checksum fastest() { return __builtin_cpu_supports("sse4.2") ? crc32c_by_instruction : crc32c_from_tables; }
#else
checksum fastest() { return crc32c_from_tables; }
#endif

} // namespace

std::uint32_t crc32c(std::span<std::uint8_t const> bytes, std::uint32_t before) {
  static checksum const chosen = fastest();
  return chosen(bytes, before);
}

std::uint32_t crc32c_from_tables(std::span<std::uint8_t const> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  while (bytes.size() >= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes.data(), 8);
    eight ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][eight >> (8 * k) & 0xff];
    bytes = bytes.subspan(8);
  }
  for (auto const byte : bytes) crc = (crc >> 8) ^ tables[0][(crc ^ byte) & 0xff];
  return ~crc;
}

} // namespace plateau
