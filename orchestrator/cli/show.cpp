// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/cli/terminal.hpp"
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "schemas/error.hpp"

#include <iostream>
#include <memory>

namespace plateau {

namespace {

struct show_flags {
  std::string run;
  std::string format = "table";
};

exit_code show(show_flags const& flags) {
  std::filesystem::path file = flags.run;
  if (std::filesystem::is_directory(file)) file = open_run_folder(file).summary_json();
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    throw input_error(file.string() + " is not there; plateau assemble builds it from what a run left");
  auto const summary = read_stored_json(file, summary_format);
  if (flags.format == "json")
    std::cout << summary.dump(2) << '\n';
  else
    std::cout << table(summary, {colour_wanted()});
  return exit_code::good;
}

} // namespace

run_subcommand add_show(CLI::App& program) {
  auto flags = std::make_shared<show_flags>();
  auto* command = program.add_subcommand("show", "Show a run's results");
  command->footer("Example: plateau show runs/latest");
  command->add_option("RUN", flags->run, "a run folder or a summary.json")->required();
  command->add_option("--format", flags->format, "table or json")->check(CLI::IsMember({"table", "json"}));
  return [flags] { return show(*flags); };
}

} // namespace plateau
