// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/merge.hpp"
#include "orchestrator/cli/front_end.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/store/assemble.hpp"
#include "schemas/codec.hpp"
#include "schemas/error.hpp"
#include "schemas/host.hpp"

#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace plateau {

namespace {

struct merge_flags {
  std::vector<std::string> runs;
  std::string folder;
};

exit_code merge(merge_flags const& flags) {
  if (!is_utf8(flags.folder))
    throw input_error(as_utf8(flags.folder) + ": the path of the run folder must be UTF-8; choose another one with -o");
  auto const made = merge_runs({{flags.runs.begin(), flags.runs.end()}, flags.folder, this_command_line()});
  for (auto const& note : made.notes) std::cerr << note << '\n';
  for (auto const& complaint : made.complaints) std::cerr << complaint << '\n';
  auto const assembled = assemble(made.folder, run_outcome{0, "", utc_now()});
  write_outcome(made.folder, *assembled.record.outcome);
  show_end_of_run(made.folder.path);
  return assembled.code;
}

} // namespace

run_subcommand add_merge(CLI::App& program) {
  auto flags = std::make_shared<merge_flags>();
  auto* command = program.add_subcommand("merge", "Make one run of several: a job array, the nodes of a fleet");
  command->footer("Examples:\n"
                  "  plateau merge runs/array-17_* -o runs/fleet\n"
                  "  plateau merge run run-of-the-other-node -o whole");
  command->add_option("RUN", flags->runs, "run folders of the same job; several of one run are its parts")->required();
  command->add_option("-o,--output", flags->folder, "the folder of the merged run")->required();
  return [flags] { return merge(*flags); };
}

} // namespace plateau
