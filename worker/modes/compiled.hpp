// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/device.hpp"
#include "schemas/job.hpp"
#include "worker/compile/package.hpp"
#include "worker/programs/program.hpp"

#include <functional>
#include <string_view>

namespace plateau {

/// Whether the mode is one of those that run a package: compiled, compiled_aten.
bool runs_a_package(std::string_view mode);

/// The package that such a mode runs for this job on this device, from the cache or compiled now; nothing is loaded. A
/// pretended device gives one that a real one of its kind will run. The job's dtype is resolved. `compiling` is called
/// as find_or_compile() does. Throws unsupported.
compiled_package compile_ahead(std::string_view mode, job const& run, program_entry const& entry,
                               device_info const& device, std::function<void(bool)> const& compiling);

} // namespace plateau
