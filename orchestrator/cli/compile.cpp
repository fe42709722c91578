// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/units.hpp"
#include "orchestrator/cli/job_fields.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/launch/rehearsal.hpp"
#include "orchestrator/rank/supervisor.hpp"
#include "orchestrator/store/durable.hpp"
#include "schemas/error.hpp"
#include "schemas/progress.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <unistd.h>

namespace plateau {

namespace {

struct compile_flags {
  std::string job_file, worker;
  std::vector<job_override> fields;
  std::optional<std::string> gpu; ///< that is elsewhere; absent: this machine's own device
};

std::vector<std::string> compiled_modes(job const& j) {
  auto modes = j.modes;
  std::erase_if(modes, [](std::string const& mode) { return !mode.starts_with("compiled"); });
  if (modes.empty())
    throw input_error("job " + j.name +
                      " has nothing to compile: none of its modes is compiled or compiled_aten; add "
                      "one with --modes");
  return modes;
}

// The GPU that is only pretended to the compiler. Code for another number of multiprocessors would never be used.
rehearsal target_of(std::string const& text) {
  auto const gpu = parse_gpu(text);
  if (gpu.multiprocessors == 0)
    throw input_error("--gpu \"" + text + "\": to compile for it the number of its multiprocessors is needed, as in " +
                      text + ",sms=132");
  return {gpu, pretend_gpu_folder()};
}

supervisor start_worker(compile_flags const& flags, job const& j, std::filesystem::path const& log) {
  auto env = without_launcher(current_environment());
  for (auto const& [name, value] : j.env) env[name] = value;
  if (flags.gpu) env = with_pretend_gpu(std::move(env), target_of(*flags.gpu), 1);
  protocol::hello hello;
  hello.run_id = "compile";
  hello.run = j;
  return supervisor({worker_program(flags.worker), std::move(env), log}, std::move(hello));
}

void tell(std::string const& mode, protocol::package const& p) {
  auto const& i = p.info;
  std::cout << mode << ": " << p.file << '\n'
            << "  " << bytes_text(static_cast<double>(p.bytes)) << ", for " << i.architecture.value_or("?") << "; "
            << (i.from_cache ? "was in the cache: compiled" : "compiled in " + number_text(i.compile_seconds) + " s")
            << " on " << i.host.value_or("?")
            << (i.compiled_by == "pretend GPU" ? ", ahead of time, for a pretended " : ", for its own ")
            << i.compiled_on.value_or("?") << ", with torch " << i.torch.value_or("?") << std::endl;
}

job read_job(compile_flags const& flags) {
  auto j = parse_job(read_text(flags.job_file), flags.job_file, flags.fields);
  if (!flags.gpu) return j;
  if (j.device == "cpu")
    throw input_error("the job is for the CPU (\"device\": \"cpu\"), and --gpu names a GPU; leave out --gpu to compile "
                      "for this machine's CPU, or add --device cuda to compile for the GPU");
  return job_to_rehearse(std::move(j));
}

// Says, once, that there is something to compile.
worker_process::look say_when_compiling(std::string const& mode, std::string const& device) {
  return [=, said = false](progress const& p) mutable -> std::optional<std::string> {
    if (!said && p.now.load() == phase::compiling) {
      std::cerr << mode << ": not in the cache; compiling for " << device << '\n';
      said = true;
    }
    return std::nullopt;
  };
}

exit_code compile(compile_flags const& flags) {
  auto const j = read_job(flags);
  auto const modes = compiled_modes(j);
  auto const log = std::filesystem::temp_directory_path() / ("plateau-compile-" + std::to_string(getpid()) + ".log");
  auto worker = start_worker(flags, j, log);
  auto const nobody_waits = [](progress const&) { return std::nullopt; };
  auto const up = worker.bring_up(nobody_waits);
  if (auto const* none = std::get_if<supervisor::no_worker>(&up))
    throw input_error(none->reason + " (its log: " + log.string() + ")" +
                      (flags.gpu ? "" : "; --gpu NAME compiles for a GPU that is elsewhere"));
  bool all = true;
  for (auto const& mode : modes) {
    auto const made = worker.compile(mode, say_when_compiling(mode, std::get<device_info>(up).name));
    if (auto const* p = std::get_if<protocol::package>(&made))
      tell(mode, *p);
    else
      std::cerr << mode << ": " << std::get<std::string>(made) << '\n', all = false;
  }
  worker.release();
  if (all) std::filesystem::remove(log);
  return all ? exit_code::good : exit_code::not_passed;
}

} // namespace

run_subcommand add_compile(CLI::App& program) {
  auto flags = std::make_shared<compile_flags>();
  auto* command = program.add_subcommand(
      "compile", "Compile a job's packages into the cache: for this machine's device, or for a GPU that is elsewhere");
  command->footer("Examples:\n"
                  "  plateau compile jobs/h200.json --gpu h200\n"
                  "  PLATEAU_CACHE=/shared/plateau plateau compile jobs/h200.json --gpu h200\n"
                  "  plateau compile jobs/smoke_cpu.json");
  command->add_option("JOB", flags->job_file, "job file; an earlier run's summary.json is one, too")->required();
  command->add_option("--gpu", flags->gpu,
                      "a GPU by name (" + gpu_names() +
                          "), or sm=9.0,memory=141GiB,sms=132; by default this machine's own device");
  command->add_option("--worker", flags->worker, "")->group("");
  add_job_fields(*command, flags->fields);
  return [flags] { return compile(*flags); };
}

} // namespace plateau
