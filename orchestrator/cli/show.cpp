// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/cli/command_line.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/cli/terminal.hpp"
#include "orchestrator/report/explain.hpp"
#include "orchestrator/report/junit.hpp"
#include "orchestrator/report/table.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "orchestrator/store/stored_json.hpp"
#include "schemas/codec.hpp"
#include "schemas/error.hpp"

#include <iostream>
#include <memory>
#include <optional>

namespace plateau {

namespace {

struct show_flags {
  std::string run;
  std::string format = "table";
  std::optional<std::string> fail_on;
  bool explain = false;
};

json read_summary(std::string const& run) {
  std::filesystem::path file = run;
  if (std::filesystem::is_directory(file)) file = open_run_folder(file).summary_json();
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    throw input_error(file.string() + " is not there; plateau assemble builds it from what a run left");
  return read_stored_json(file, summary_format);
}

exit_code show(show_flags const& flags) {
  auto const asked = flags.fail_on ? std::optional(parse_gates(*flags.fail_on)) : std::nullopt;
  auto const summary = read_summary(flags.run);
  auto const held_to = asked ? *asked : decode<gates>(summary["run"]["fail_on"]);
  if (flags.explain)
    std::cout << explanation(summary);
  else if (flags.format == "json")
    std::cout << summary.dump(2) << '\n';
  else if (flags.format == "junit")
    std::cout << junit(summary, held_to);
  else
    std::cout << table(summary, {colour_wanted()});
  auto const failed = failed_gates(summary, held_to);
  if (failed.empty()) return exit_code::good;
  std::cerr << "gate failed: " << failed << '\n';
  return exit_code::gate_failed;
}

} // namespace

run_subcommand add_show(CLI::App& program) {
  auto flags = std::make_shared<show_flags>();
  auto* command = program.add_subcommand("show", "Show a run's results");
  command->footer("Examples:\n"
                  "  plateau show runs/latest\n"
                  "  plateau show runs/latest --explain\n"
                  "  plateau show runs/latest --format junit --fail-on growing,straggler > plateau.xml");
  command->add_option("RUN", flags->run, "a run folder or a summary.json")->required();
  auto* format = command->add_option("--format", flags->format, "table, json or junit")
                     ->check(fits({{"enum", {"table", "json", "junit"}}}));
  command
      ->add_flag("--explain", flags->explain,
                 "where each allocation comes from: events and bytes per request, operator by operator")
      ->excludes(format);
  command
      ->add_option("--fail-on", flags->fail_on,
                   "checks whose findings give exit code 4: " + check_names() +
                       ", or none; by default those of the run")
      ->check(read_by(parse_gates));
  return [flags] { return show(*flags); };
}

} // namespace plateau
