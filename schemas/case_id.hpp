// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plateau {

/// One point of a job's grid. Files, HDF5 groups, resume and compare go by its text.
struct case_id {
  std::string mode; ///< small letters, digits and underscores: the id is also a file's name
  std::int64_t concurrency = 1;
  std::int64_t repeat = 0; ///< from 1 when the job has repeats, else 0

  /// "eager.c4", with repeats "eager.c4.r2".
  std::string text() const;
  bool operator==(case_id const&) const = default;

  template <class Visit>
  friend void describe(case_id& x, Visit&& visit) {
    visit("mode", x.mode);
    visit("concurrency", x.concurrency);
    visit("repeat", x.repeat);
  }
};

/// Reads what text() wrote. Throws format_error.
case_id parse_case_id(std::string_view text);

} // namespace plateau
