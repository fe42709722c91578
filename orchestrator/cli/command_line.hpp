// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/json.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace plateau {

/// Refuses a command line that the program's subcommands cannot read as it was meant, before CLI11 reads it: CLI11
/// stops at the first mistake, knows no near match, and takes an option for the value of the one before it. `words` are
/// those after the program's name. Throws input_error with a sentence for every mistake of the line: unknown
/// subcommands and options (and what was meant), values that are missing, empty or not allowed, an option given twice,
/// options that exclude each other, arguments missing or too many. A line that asks for help or the version passes.
/// The values of the job's fields are not looked into: parse_job judges them together with the file's.
void refuse_bad_command_line(CLI::App& program, std::vector<std::string> const& words);

/// A check for an option's value, in the schemas' own words: fits({{"enum", {"mpirun", "srun"}}}).
CLI::Validator fits(json schema);

/// A check that a value can be read: `parse` throws input_error when it cannot.
CLI::Validator read_by(std::function<void(std::string const&)> parse);

} // namespace plateau
