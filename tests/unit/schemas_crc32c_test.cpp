// SPDX-License-Identifier: Apache-2.0
#include "schemas/crc32c.hpp"

#include <gtest/gtest.h>
#include <random>
#include <string_view>
#include <vector>

namespace plateau {
namespace {

std::vector<std::uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::vector<std::uint8_t> random_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::vector<std::uint8_t> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(crc32c, is_that_of_rfc_3720) {
  for (auto const checksum : {crc32c, crc32c_from_tables}) {
    EXPECT_EQ(checksum({}, 0), 0u);
    EXPECT_EQ(checksum(bytes_of("123456789"), 0), 0xe3069283u);
    EXPECT_EQ(checksum(std::vector<std::uint8_t>(32, 0), 0), 0x8a9136aau);
    EXPECT_EQ(checksum(std::vector<std::uint8_t>(32, 0xff), 0), 0x62a8ab43u);
  }
}

TEST(crc32c, is_the_same_by_instruction_and_from_tables_at_every_length_and_alignment) {
  auto const bytes = random_bytes(100);
  for (std::size_t from = 0; from < 9; ++from)
    for (std::size_t size = 0; size + from <= bytes.size(); ++size) {
      auto const part = std::span(bytes).subspan(from, size);
      ASSERT_EQ(crc32c(part, 7), crc32c_from_tables(part, 7)) << size << " bytes from " << from;
    }
}

TEST(crc32c, goes_on_from_the_checksum_of_what_came_before) {
  auto const bytes = random_bytes(1000);
  auto const whole = std::span(bytes);
  for (auto const checksum : {crc32c, crc32c_from_tables})
    EXPECT_EQ(checksum(whole.subspan(333), checksum(whole.first(333), 0)), checksum(whole, 0));
}

} // namespace
} // namespace plateau
