// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace plateau {

/// A text that can be shown on any terminal, whatever a damaged file or a stranger put into it: UTF-8, without control
/// characters other than the newline. What is neither is replaced.
std::string readable(std::string_view text);

/// Something that a user can cause and mend: bad usage, a bad file. Its text is the sentence that the user
/// reads; it is made readable, since it may quote anything.
struct input_error : std::runtime_error {
  explicit input_error(std::string_view sentence) : std::runtime_error(readable(sentence)) {}
};

/// A stored or received document that does not follow its format: what is wrong, and where in the document.
struct format_error : input_error {
  using input_error::input_error;
};

} // namespace plateau
