// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace plateau {

/// Something that a user can cause and mend: bad usage, a bad file. Its text is the sentence that the user
/// reads.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A stored or received document that does not follow its format: what is wrong, and where in the document.
struct format_error : input_error {
  using input_error::input_error;
};

} // namespace plateau
