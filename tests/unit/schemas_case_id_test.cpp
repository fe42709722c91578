// SPDX-License-Identifier: Apache-2.0
#include "schemas/case_id.hpp"
#include "schemas/error.hpp"

#include <gtest/gtest.h>

namespace plateau {
namespace {

TEST(case_id, is_read_back_from_its_text) {
  for (auto const& id : {case_id{"eager", 4, 0}, case_id{"compiled_aten", 1024, 0}, case_id{"arena", 8, 2}})
    EXPECT_EQ(parse_case_id(id.text()), id) << id.text();
  EXPECT_EQ((case_id{"eager", 4, 0}.text()), "eager.c4");
  EXPECT_EQ((case_id{"eager", 4, 2}.text()), "eager.c4.r2");
}

TEST(case_id, refuses_every_other_text) {
  for (auto const* text :
       {"", "eager", "eager.", "eager.c", "eager.c0", "eager.c-1", "eager.c+1", "eager.c04", "eager.c4.", "eager.c4.r",
        "eager.c4.r0", "eager.c4.r2.r3", "eager.c4x", "eager.4", ".c4", "eager.c99999999999999999999", "eager.c4 "})
    EXPECT_THROW(parse_case_id(text), format_error) << text;
}

TEST(case_id, cannot_name_a_file_elsewhere) {
  for (auto const* text : {"../eager.c4", "/etc.c4", "a/b.c4", "Eager.c4", "ea\ner.c4"})
    EXPECT_THROW(parse_case_id(text), format_error) << text;
}

} // namespace
} // namespace plateau
