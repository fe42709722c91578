// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"
#include "schemas/run_record.hpp"

#include <string>

namespace plateau {

/// A summary as JUnit XML: one test suite for the run; in it a test for each case, which passes if the case did, and
/// for each measured case a test for each check. A finding fails its test if its check is one of the gates; else it is
/// the text of a test that passes. A check that could not be made is skipped, and fails at a strict gate; so does a
/// skipped case at the gate `skipped`. Tests fail where failed_gates() has something to say, and where a case did not
/// pass. Throws format_error as table() does.
std::string junit(json const& summary, gates const& g);

} // namespace plateau
