// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/codec.hpp"
#include "schemas/job.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plateau {

/// Checks a value against the part of JSON Schema that the job's table uses: type, enum, minimum,
/// exclusiveMinimum, maximum, minLength, minItems, uniqueItems, items, properties with additionalProperties.
/// Appends a problem for everything that does not hold; `where` is the value's own pointer or flag.
void check_value(json const& value, json const& schema, std::string const& where, std::vector<problem>& problems);

/// What was meant, if the typed word is near one of `known`, within half its length and three edits, or is another
/// common name for it, such as bf16; whatever its case.
std::optional<std::string> nearest(std::string_view typed, std::vector<std::string> const& known);

/// "; did you mean X?" for the nearest of `known`, or nothing when none is near.
std::string did_you_mean(std::string_view typed, std::vector<std::string> const& known);

/// What a schema allows, in words: "an integer >= 1 and <= 64", "one of a, b".
std::string needed(json const& schema);

/// `where` extended by a key, as a JSON pointer that is safe to print.
std::string pointer(std::string const& where, std::string const& key);

} // namespace plateau
