// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/command_line.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/run.hpp"
#include "orchestrator/cli/subcommands.hpp"

namespace plateau {

run_subcommand add_rehearse(CLI::App& program) {
  auto flags = std::make_shared<run_flags>();
  flags->subcommand = "rehearse";
  flags->ranks = 1; // all ranks would do the same
  auto gpu = std::make_shared<std::string>();
  auto* command = program.add_subcommand(
      "rehearse", "The memory side of a job on a GPU that is not here: bytes, segments, events, and what does not fit");
  command->footer("Examples:\n"
                  "  plateau rehearse jobs/seed_h200.json --gpu h200\n"
                  "  plateau rehearse jobs/h200.json --gpu sm=9.0,memory=141GiB --concurrency-levels 4,16");
  command->add_option("JOB", flags->job_file, "job file; an earlier run's summary.json is one, too")->required();
  command->add_option("--gpu", *gpu, "a GPU by name (" + gpu_names() + "), or sm=9.0,memory=141GiB,sms=132")
      ->required();
  command->add_option("-n,--ranks", flags->ranks, "ranks to start, each with a GPU of its own; 1 by default")
      ->check(fits({{"type", "integer"}, {"minimum", 1}, {"maximum", 64}})); // devices that the pretend GPU has at most
  add_run_options(*command, flags);
  return [flags, gpu] {
    flags->gpu = parse_gpu(*gpu);
    pretend_gpu_folder();
    return run(*flags);
  };
}

} // namespace plateau
