// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/codec.hpp"

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

/// What the fuzz targets share. Each defines fuzz_one(); libFuzzer calls it with one input after another.
namespace plateau::fuzzing {

using bytes = std::span<std::uint8_t const>;

/// Stops the fuzzer, which keeps the input, when something that must hold does not.
inline void must(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// A sentence that is shown to a user: UTF-8, nothing that a terminal would obey, no longer than a person reads.
inline void must_be_readable(std::string_view sentence) {
  must(!sentence.empty() && is_utf8(std::string(sentence)), "a message is text");
  for (unsigned char const c : sentence) must(c >= 32 || c == '\n', "a message has no control characters");
  must(sentence.size() < 100'000, "a message is not too long to read");
}

inline std::string_view text_of(bytes input) { return {reinterpret_cast<char const*>(input.data()), input.size()}; }

/// Takes bytes off the front of an input; zeros when it is used up.
struct taker {
  bytes rest;
  std::uint8_t byte() {
    if (rest.empty()) return 0;
    auto const first = rest[0];
    rest = rest.subspan(1);
    return first;
  }
  bytes some(std::size_t n) {
    auto const taken = rest.first(std::min(n, rest.size()));
    rest = rest.subspan(taken.size());
    return taken;
  }
};

void fuzz_one(bytes input);

} // namespace plateau::fuzzing
