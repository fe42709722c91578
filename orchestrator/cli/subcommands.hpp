// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "orchestrator/analysis/outcome.hpp"

#include <CLI/CLI.hpp>
#include <functional>

namespace plateau {

/// Adds a subcommand to the program; what it gives runs it once its arguments are parsed. Throws input_error.
using run_subcommand = std::function<exit_code()>;

run_subcommand add_run(CLI::App& program);
run_subcommand add_submit(CLI::App& program);
run_subcommand add_assemble(CLI::App& program);
run_subcommand add_merge(CLI::App& program);
run_subcommand add_show(CLI::App& program);
run_subcommand add_validate(CLI::App& program);
run_subcommand add_devices(CLI::App& program);
run_subcommand add_selftest(CLI::App& program);

} // namespace plateau
