// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/command_line.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/rank/supervisor.hpp"
#include "schemas/error.hpp"

#include <iostream>
#include <memory>
#include <unistd.h>

namespace plateau {

namespace {

struct devices_flags {
  std::int64_t ranks = 1;
  std::string device = "auto", worker;
};

// A worker's answer to hello, as local rank `rank` of `ranks`.
device_info ask(devices_flags const& flags, std::int64_t rank) {
  auto const log = std::filesystem::temp_directory_path() / ("plateau-devices-" + std::to_string(getpid()) + ".log");
  protocol::hello hello;
  hello.rank = hello.local_rank = rank;
  hello.local_size = flags.ranks;
  hello.run.name = "devices";
  hello.run.device = flags.device;
  supervisor worker({worker_program(flags.worker), without_launcher(current_environment()), log}, hello);
  auto const answer = worker.bring_up([](progress const&) { return std::nullopt; });
  worker.release();
  if (auto const* none = std::get_if<supervisor::no_worker>(&answer))
    throw input_error((none->refused ? "" : "the worker ") + none->reason + " (its log: " + log.string() + ")");
  std::filesystem::remove(log);
  return std::get<device_info>(answer);
}

exit_code devices(devices_flags const& flags) {
  for (std::int64_t rank = 0; rank < flags.ranks; ++rank) {
    auto const d = ask(flags, rank);
    std::cout << "local rank " << rank << ": " << d.kind << (d.index ? " " + std::to_string(*d.index) : "") << ", "
              << d.name << ", " << d.memory_bytes / (1 << 20) << " MiB, CPUs " << d.cpu_set
              << (d.uuid ? ", " + *d.uuid : "") << '\n';
    for (auto const& [what, version] : d.versions) std::cout << "    " << what << ' ' << version << '\n';
    if (d.sensors_unavailable)
      std::cout << "    no clocks, power or other processes: " << *d.sensors_unavailable << '\n';
  }
  return exit_code::good;
}

} // namespace

run_subcommand add_devices(CLI::App& program) {
  auto flags = std::make_shared<devices_flags>();
  auto* command =
      program.add_subcommand("devices", "Show what a worker sees here, and which device each local rank gets");
  command->footer("Example: plateau devices -n 2");
  command->add_option("-n,--ranks", flags->ranks, "local ranks")
      ->check(fits({{"type", "integer"}, {"minimum", 1}, {"maximum", 1024}}));
  command->add_option("--device", flags->device, "auto, cuda or cpu")->check(fits({{"enum", {"auto", "cuda", "cpu"}}}));
  command->add_option("--worker", flags->worker, "")->group("");
  return [flags] { return devices(*flags); };
}

} // namespace plateau
