// SPDX-License-Identifier: Apache-2.0
#include "schemas/codec.hpp"
#include "tests/unit/schemas_samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

using testing::HasSubstr;
using bytes = std::vector<std::uint8_t>;

std::string refusal_of(bytes const& document) {
  try {
    from_cbor(document);
  } catch (format_error const& e) {
    return e.what();
  }
  return "accepted";
}

struct everything {
  bool yes = false;
  std::int64_t number = 0;
  std::int32_t small = 0;
  double real = 0;
  std::string text;
  std::optional<std::string> maybe;
  std::vector<std::int64_t> series;
  std::vector<std::string> words;
  std::vector<std::vector<std::int64_t>> table;
  std::map<std::string, std::string> pairs;
  case_status status = case_status::passed;
  json any;

  template <class Visit>
  friend void describe(everything& x, Visit&& visit) {
    visit("yes", x.yes);
    visit("number", x.number);
    visit("small", x.small);
    visit("real", x.real);
    visit("text", x.text);
    visit("maybe", x.maybe);
    visit("series", x.series);
    visit("words", x.words);
    visit("table", x.table);
    visit("pairs", x.pairs);
    visit("status", x.status);
    visit("any", x.any);
  }
};

everything sample() {
  return {true,
          INT64_MIN,
          INT32_MAX,
          0.1,
          "größer",
          std::nullopt,
          {INT64_MIN, -1, 0, INT64_MAX},
          {"a", ""},
          {{1}, {}},
          {{"k", "v"}},
          case_status::crashed,
          json{{"x", nullptr}}};
}

TEST(codec, reads_back_what_it_wrote) {
  auto const x = sample();
  auto const again = decode<everything>(from_cbor(to_cbor(encode(x))));
  EXPECT_EQ(encode(again), encode(x));
  EXPECT_EQ(again.series, x.series);
  EXPECT_EQ(again.table, x.table);
  EXPECT_EQ(again.number, INT64_MIN);
  EXPECT_FALSE(again.maybe);
  EXPECT_EQ(again.status, case_status::crashed);
}

TEST(codec, a_series_costs_eight_bytes_a_number) {
  auto const size = to_cbor(encode_typed_array(std::vector<std::int64_t>(100'000, 7))).size();
  EXPECT_LE(size, 800'010u);
}

TEST(codec, a_series_is_tag_79_as_rfc_8746_has_it) {
  EXPECT_EQ(to_cbor(encode_typed_array({1})), (bytes{0xd8, 79, 0x48, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(decode_typed_array(from_cbor(bytes{0xd8, 79, 0x40}), ""), std::vector<std::int64_t>{});
}

TEST(codec, refuses_a_series_of_another_kind) {
  for (auto const& other : {bytes{0xd8, 78, 0x48, 1, 0, 0, 0, 0, 0, 0, 0}, // 32-bit numbers
                            bytes{0x48, 1, 0, 0, 0, 0, 0, 0, 0},           // no tag
                            bytes{0xd8, 79, 0x41, 1},                      // an eighth of a number
                            bytes{0x81, 1}})                               // a plain array
    EXPECT_THROW(decode_typed_array(from_cbor(other), "/x"), format_error);
}

TEST(codec, names_what_is_missing_or_of_the_wrong_type) {
  auto const refusal = [](auto change) {
    auto document = encode(sample());
    change(document);
    try {
      decode<everything>(document);
    } catch (format_error const& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal([](json& d) { d.erase("text"); }), "/text: missing");
  EXPECT_EQ(refusal([](json& d) { d["text"] = 5; }), "/text: 5; needs a text in UTF-8");
  EXPECT_EQ(refusal([](json& d) { d["text"] = "\xff"; }), "/text: \"\xef\xbf\xbd\"; needs a text in UTF-8");
  EXPECT_EQ(refusal([](json& d) { d["words"] = {"a", 1}; }), "/words/1: 1; needs a text in UTF-8");
  EXPECT_EQ(refusal([](json& d) { d["small"] = std::int64_t{1} << 40; }),
            "/small: 1099511627776; needs a smaller integer");
  EXPECT_EQ(refusal([](json& d) { d["number"] = UINT64_MAX; }),
            "/number: 18446744073709551615; needs a 64-bit integer");
  EXPECT_EQ(refusal([](json& d) { d["status"] = "fine"; }), "/status: \"fine\"; needs one of its names");
  EXPECT_EQ(refusal([](json& d) { d["yes"] = 1; }), "/yes: 1; needs true or false");
  EXPECT_EQ(refusal([](json& d) { d["newer_key"] = 1; }), "accepted");
  EXPECT_EQ(refusal([](json& d) { d = json::array(); }), "the document: []; needs an object");
}

TEST(codec, writes_text_that_is_no_utf8_as_text_that_is) {
  everything x;
  x.text = "cut \xc3";
  x.pairs["k"] = "\xff";
  auto const document = encode(x);
  EXPECT_EQ(document["text"], "cut \xef\xbf\xbd");
  EXPECT_NO_THROW(document.dump());
  EXPECT_NO_THROW(decode<everything>(from_cbor(to_cbor(document))));
}

TEST(codec, refuses_nesting_over_64) {
  bytes deep(64, 0x81);
  deep.push_back(0);
  EXPECT_EQ(refusal_of(deep), "accepted");
  deep.insert(deep.begin(), 0x81);
  EXPECT_THAT(refusal_of(deep), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal_of(bytes(1'000'000, 0x81)), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(refusal_of(bytes(1'000'000, 0xc1)), HasSubstr("nested more than 64 deep")); // tags of tags
}

TEST(codec, allocates_nothing_on_the_word_of_a_length) {
  for (auto const head : bytes{0x5b, 0x7b, 0x9b, 0xbb}) // bytes, text, array, map of 2^63 - 1
    EXPECT_THAT(refusal_of({head, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}), HasSubstr("claims more"));
  EXPECT_THAT(refusal_of({0xbb, 0x80, 0, 0, 0, 0, 0, 0, 0, 0}),
              HasSubstr("claims more")); // 2^63 pairs: twice is 0
}

TEST(codec, refuses_what_json_has_no_place_for) {
  EXPECT_THAT(refusal_of({0xf7}), HasSubstr("JSON lacks"));       // undefined
  EXPECT_THAT(refusal_of({0xf8, 0x20}), HasSubstr("JSON lacks")); // a simple value without a name
  EXPECT_THAT(refusal_of({0xa1, 0x01, 0x02}), HasSubstr("key that is no text"));
  EXPECT_EQ(from_cbor(bytes{0xc1, 0x05}), 5) << "a tag that annotates a number";
}

TEST(codec, refuses_documents_that_would_grow_without_bound) {
  bytes many(5 + (1u << 22) + 1, 0);
  many[0] = 0x9a, many[1] = 0x00, many[2] = 0x40, many[3] = 0x00, many[4] = 0x01; // an array of 2^22 + 1 zeros
  EXPECT_THAT(refusal_of(many), HasSubstr("4194304 items"));
  bytes wide(3 + 2 * 4097, 0x60);
  wide[0] = 0xb9, wide[1] = 0x10, wide[2] = 0x01; // an object of 4097 keys
  EXPECT_THAT(refusal_of(wide), HasSubstr("4096 keys"));
}

TEST(codec, refuses_more_or_less_than_one_document) {
  EXPECT_THAT(refusal_of({}), HasSubstr("ends too early"));
  EXPECT_THAT(refusal_of({0x01, 0x01}), HasSubstr("more bytes than one document"));
  EXPECT_THAT(refusal_of({0x9f, 0x01, 0xff}), HasSubstr("indefinite"));
  EXPECT_THAT(refusal_of({0x3b, 0x80, 0, 0, 0, 0, 0, 0, 0}), HasSubstr("below 64 bits"));
}

TEST(codec, refuses_a_document_cut_at_any_byte) {
  auto const whole = to_cbor(encode(passed_result()));
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_THROW(from_cbor(whole.data(), size), format_error) << "cut at " << size << " of " << whole.size();
  EXPECT_NO_THROW(read_case_result(from_cbor(whole)));
}

TEST(codec, survives_flipped_bits) {
  auto const whole = to_cbor(encode(passed_result()));
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = whole;
    for (auto flips = random() % 4 + 1; flips > 0; --flips) flip(damaged, random);
    try {
      read_case_result(from_cbor(damaged)); // what it says may be wrong: a checksum's business
    } catch (format_error const&) {
    }
  }
}

TEST(format_version, refuses_what_is_newer_or_something_else) {
  format_version const expected{"plateau.case_result", 2, 1};
  auto const refusal = [&](json const& document) -> std::string {
    try {
      check_format(document, expected);
    } catch (format_error const& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(expected.text(), "plateau.case_result/2.1");
  for (auto const* fine : {"plateau.case_result/2.1", "plateau.case_result/2.7", "plateau.case_result/1.0"})
    EXPECT_EQ(refusal({{"schema", fine}}), "accepted") << fine;
  EXPECT_THAT(refusal({{"schema", "plateau.case_result/3.0"}}), HasSubstr("newer plateau"));
  for (auto const* other : {"plateau.run/2.1", "plateau.case_result", "plateau.case_result/", "plateau.case_result/x",
                            "plateau.case_result/2", "plateau.case_result/-1.0", ""})
    EXPECT_THAT(refusal({{"schema", other}}), HasSubstr("needs plateau.case_result/2.1")) << other;
  EXPECT_THAT(refusal({{"schema", 1}}), HasSubstr("says no \"schema\""));
  EXPECT_THAT(refusal(json::array()), HasSubstr("says no \"schema\""));
}

} // namespace
} // namespace plateau
