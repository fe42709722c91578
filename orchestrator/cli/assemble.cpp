// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/cli/front_end.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/store/folder_lock.hpp"

#include <iostream>
#include <memory>

namespace plateau {

run_subcommand add_assemble(CLI::App& program) {
  auto folder = std::make_shared<std::string>();
  auto* command = program.add_subcommand("assemble", "Build run.h5 and summary.json from what a run left");
  command->footer("Example: plateau assemble runs/latest");
  command->add_option("RUN", *folder, "the run folder")->required();
  return [folder] {
    auto const run = open_run_folder(*folder);
    folder_lock const only_here(run);
    auto const assembled = assemble(run);
    for (auto const& complaint : assembled.complaints) std::cerr << complaint << '\n';
    show_end_of_run(run.path);
    return assembled.code;
  };
}

} // namespace plateau
