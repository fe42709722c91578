// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"

#include <gmock/gmock.h>

#include <string>

namespace plateau {
namespace {

TEST(readable, leaves_a_text_as_it_is) {
  EXPECT_EQ(readable("two lines:\n  p99 ≤ 5 µs, naïve, 高原"), "two lines:\n  p99 ≤ 5 µs, naïve, 高原");
  EXPECT_EQ(readable(""), "");
}

TEST(readable, replaces_what_a_terminal_would_obey) {
  EXPECT_EQ(readable("a\x1b[2Jb\r\t\x7f"), "a?[2Jb???");
  EXPECT_EQ(readable("\xc2\x9b[2J"), "?[2J");
  EXPECT_EQ(readable(std::string("nul\0", 4)), "nul?");
}

TEST(readable, replaces_what_is_not_utf_8) {
  EXPECT_EQ(readable("half a letter: \xe2\x89"), "half a letter: \xef\xbf\xbd");
  EXPECT_EQ(readable("\xff"), "\xef\xbf\xbd");
}

TEST(an_input_error, is_readable_whatever_it_quotes) {
  EXPECT_STREQ(input_error("is \"\x1b]0;gone\a\"").what(), "is \"?]0;gone?\"");
}

} // namespace
} // namespace plateau
