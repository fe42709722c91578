// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/job.hpp"

#include <CLI/CLI.hpp>
#include <vector>

namespace plateau {

/// Adds a flag for each field of the job; what is typed goes into `typed`, which must outlive the parsing.
void add_job_fields(CLI::App& command, std::vector<job_override>& typed);

} // namespace plateau
