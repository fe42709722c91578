// SPDX-License-Identifier: Apache-2.0
#include "schemas/error.hpp"

#include "schemas/codec.hpp"

namespace plateau {

std::string readable(std::string_view text) {
  auto const valid = as_utf8(std::string(text));
  std::string out;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    auto const byte = static_cast<unsigned char>(valid[i]);
    auto const next = i + 1 < valid.size() ? static_cast<unsigned char>(valid[i + 1]) : 0;
    bool const high_control = byte == 0xc2 && next < 0xa0; // U+0080 to U+009F: terminals obey these, too
    bool const control = (byte < 32 && byte != '\n') || byte == 127 || high_control;
    out += control ? '?' : valid[i];
    if (high_control) ++i;
  }
  return out;
}

} // namespace plateau
