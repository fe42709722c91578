// SPDX-License-Identifier: Apache-2.0
#include "schemas/case_id.hpp"

#include "schemas/error.hpp"

#include <charconv>

namespace plateau {

std::string case_id::text() const {
  auto text = mode + ".c" + std::to_string(concurrency);
  if (repeat > 0) text += ".r" + std::to_string(repeat);
  return text;
}

case_id parse_case_id(std::string_view text) {
  auto const refuse = [&] {
    throw format_error("\"" + std::string(text) + "\" is no case id; needs one like eager.c4 or eager.c4.r2");
  };
  case_id id;
  auto const part = [&](std::string_view& rest, char letter) -> std::int64_t {
    std::int64_t value = 0;
    auto const parsed = rest.size() > 2 && rest[0] == '.' && rest[1] == letter
                            ? std::from_chars(rest.data() + 2, rest.data() + rest.size(), value)
                            : std::from_chars_result{nullptr, std::errc::invalid_argument};
    if (parsed.ec != std::errc() || value < 1) refuse();
    rest.remove_prefix(static_cast<std::size_t>(parsed.ptr - rest.data()));
    return value;
  };
  auto rest = text;
  id.mode = std::string(rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_")));
  rest.remove_prefix(id.mode.size());
  id.concurrency = part(rest, 'c');
  if (!rest.empty()) id.repeat = part(rest, 'r');
  if (id.mode.empty() || id.text() != text) refuse();
  return id;
}

} // namespace plateau
