// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/trailer.hpp"

#include "schemas/error.hpp"

#include <cstring>
#include <string>

namespace plateau {

namespace {

constexpr std::size_t name_size = 4;

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

} // namespace

trailer trailer_of(std::string_view name, std::uint32_t crc, std::uint64_t length) {
  trailer end{};
  std::memcpy(end.data(), name.data(), name_size);
  put_little_endian(end.data() + 4, crc);
  put_little_endian(end.data() + 8, length);
  return end;
}

bool is_trailer(std::span<std::uint8_t const> last, std::string_view name) {
  return last.size() == trailer_size && std::memcmp(last.data(), name.data(), name_size) == 0;
}

void check_trailer(std::span<std::uint8_t const, trailer_size> end, std::uint32_t crc, std::uint64_t length) {
  auto const promised = take_little_endian<std::uint64_t>(end.data() + 8);
  if (promised != length)
    throw format_error("is truncated: its trailer says " + std::to_string(promised) + " bytes, there are " +
                       std::to_string(length));
  if (take_little_endian<std::uint32_t>(end.data() + 4) != crc)
    throw format_error("is damaged: its checksum does not match its content");
}

} // namespace plateau
