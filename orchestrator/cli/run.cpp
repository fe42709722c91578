// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/run.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/cli/front_end.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/launch/command.hpp"
#include "orchestrator/rank/run.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/codec.hpp"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <system_error>

namespace plateau {

namespace {

job read_job(run_flags const& flags) {
  auto j = parse_job(read_text(flags.job_file), flags.job_file, flags.fields);
  return flags.gpu ? job_to_rehearse(std::move(j)) : j;
}

gates gates_of(run_flags const& flags) { return flags.fail_on ? parse_gates(*flags.fail_on) : default_gates(); }

// What every rank runs: this program again, told that it is a rank.
std::vector<std::string> rank_program(run_flags const& flags, launch_plan const& plan,
                                      std::filesystem::path const& folder) {
  std::vector<std::string> words{this_program().string(), flags.subcommand,
                                 std::filesystem::absolute(flags.job_file).string()};
  for (auto const& [field, text] : flags.fields) words.push_back(flag_of(field) + "=" + text);
  words.insert(words.end(), {"-o", folder.string(), "--grace", std::to_string(flags.grace), "--worker",
                             worker_program(flags.worker).string(), "--as-rank", "--typed",
                             json(this_command_line()).dump(-1, ' ', false, json::error_handler_t::replace),
                             "--started-by", plan.role == launch_role::start_srun ? "srun" : "mpirun",
                             "--expected-ranks", std::to_string(plan.ranks)});
  if (flags.fail_on) words.push_back("--fail-on=" + *flags.fail_on);
  if (flags.gpu) words.push_back("--gpu=" + flags.gpu->spec());
  if (!flags.blind_to.empty()) words.push_back("--blind-to=" + flags.blind_to);
  if (!flags.folder) words.push_back("--folder-is-ours");
  return words;
}

launch_role role_of(run_flags const& flags) {
  auto const role = where_am_i(look_around(flags.as_rank));
  if (role == launch_role::rank || !flags.launcher) return role;
  return *flags.launcher == "srun" ? launch_role::start_srun : launch_role::start_mpirun;
}

exit_code dry_run(job const& j, launch_plan const& plan) {
  auto const cases = cases_of(j);
  std::int64_t requests = 0;
  for (auto const& id : cases) {
    std::cout << id.text() << '\n';
    requests += id.concurrency * j.requests_per_worker;
  }
  constexpr std::int64_t bytes_per_request = 2 * sizeof(std::int64_t);
  std::cout << cases.size() << " cases on " << plan.ranks << (plan.ranks == 1 ? " rank; " : " ranks; ")
            << requests * plan.ranks << " timed requests, about "
            << std::max<std::int64_t>(1, requests * plan.ranks * bytes_per_request / 1'000'000) << " MB of samples\n"
            << shell_text(launch_command(plan)) << '\n';
  return exit_code::good;
}

// How many ranks a launcher of the user's says it started. One of another MPI would make N worlds of one rank each.
std::optional<std::int64_t> launched_ranks(environment const& env) {
  auto const told = env.find("OMPI_COMM_WORLD_SIZE");
  if (told == env.end()) return std::nullopt;
  return std::strtoll(told->second.c_str(), nullptr, 10);
}

exit_code as_rank(run_flags const& flags) {
  rank_options options;
  options.job_file = flags.job_file;
  options.overrides = flags.fields;
  if (flags.folder) options.folder = *flags.folder;
  options.folder_is_ours = flags.folder_is_ours || !flags.folder;
  options.worker = worker_program(flags.worker);
  options.launcher = flags.started_by;
  options.expected_ranks = flags.expected_ranks ? flags.expected_ranks : launched_ranks(current_environment());
  options.fail_on = gates_of(flags);
  options.blind_to = flags.blind_to;
  if (flags.gpu) options.rehearsed = rehearsal{*flags.gpu, pretend_gpu_folder()};
  options.grace = std::chrono::duration<double>(flags.grace);
  options.command_line =
      flags.typed.empty() ? this_command_line() : json::parse(flags.typed).get<std::vector<std::string>>();
  auto const end = run_as_rank(options);
  if (flags.as_rank) return exit_code::good; // the front end reads the outcome; a launcher would kill the other ranks
  if (end.folder) show_end_of_run(*end.folder);
  return end.code;
}

void refuse_without_a_current_folder() {
  std::error_code why;
  if (std::filesystem::current_path(why).empty())
    throw input_error("the current folder cannot be used (" + why.message() +
                      "); it was deleted, or you may not enter it: change to another one");
}

} // namespace

exit_code run(run_flags const& flags) {
  refuse_without_a_current_folder();
  auto const role = role_of(flags);
  if (role == launch_role::rank && flags.dry_run)
    throw input_error("--dry-run starts nothing, so it needs no launcher; type it without mpirun or srun");
  if (role == launch_role::rank) return as_rank(flags);
  auto const j = read_job(flags);
  refuse_gates_without_a_soak(gates_of(flags), j);
  launch_plan plan;
  plan.role = role;
  plan.ranks = rank_count(flags.ranks, role, current_environment(), visible_gpus());
  plan.launcher_args = flags.launch_args;
  auto const folder = std::filesystem::absolute(flags.folder ? std::filesystem::path(*flags.folder)
                                                             : std::filesystem::path("runs") / new_run_id(j.name));
  if (!is_utf8(folder.string()))
    throw input_error(as_utf8(folder.string()) +
                      ": the path of the run folder must be UTF-8; choose another one with -o");
  plan.program = rank_program(flags, plan, folder);
  if (flags.dry_run) return dry_run(j, plan);
  refuse_if_taken(folder);
  return start_ranks(plan, folder);
}

void add_job_options(CLI::App& command, std::string& job_file, std::vector<job_override>& fields) {
  command.add_option("JOB", job_file, "job file; an earlier run's summary.json is one, too")->required();
  for (auto const& field : job_fields())
    command
        .add_option_function<std::vector<std::string>>(
            flag_of(field.name),
            [&fields, name = std::string(field.name)](std::vector<std::string> const& texts) {
              for (auto const& text : texts) fields.push_back({name, text});
            },
            std::string(field.help))
        ->type_name("TEXT")
        ->expected(1, field.flag_adds ? 1'000 : 1)
        ->allow_extra_args(false)
        ->group("Fields of the job");
}

void add_run_options(CLI::App& command, std::shared_ptr<run_flags> const& flags) {
  add_job_options(command, flags->job_file, flags->fields);
  command.add_option("-o,--output", flags->folder, "the run folder; by default runs/<time>-<name>-<id>");
  command.add_flag("--dry-run", flags->dry_run, "list the cases and the launch command, start nothing");
  command.add_option("--launcher", flags->launcher, "mpirun or srun, instead of what fits the place")
      ->check(CLI::IsMember({"mpirun", "srun"}));
  command
      .add_option("--launch-args", flags->launch_args,
                  "further arguments of the launcher, once each; with any, mpirun's hosts are yours to choose, too")
      ->allow_extra_args(false);
  command.add_option("--fail-on", flags->fail_on,
                     "checks whose findings make the run bad, exit code 4: " + check_names() +
                         ", or none; by default growing");
  command.add_option("--grace", flags->grace, "seconds that the current case gets after Ctrl-C")
      ->check(CLI::Range(0.0, 86400.0));
  command.add_option("--worker", flags->worker, "")->group("");
  command.add_option("--blind-to", flags->blind_to, "")->group("");
  command.add_flag("--as-rank", flags->as_rank, "")->group("");
  command.add_flag("--folder-is-ours", flags->folder_is_ours, "")->group("");
  command.add_option("--started-by", flags->started_by, "")->group("");
  command.add_option("--typed", flags->typed, "")->group("");
  command.add_option("--expected-ranks", flags->expected_ranks, "")->group("");
}

run_subcommand add_run(CLI::App& program) {
  auto flags = std::make_shared<run_flags>();
  auto* command = program.add_subcommand("run", "Run a job and gather its results");
  command->footer("Examples:\n"
                  "  plateau run jobs/smoke_cpu.json -n 2\n"
                  "  plateau run jobs/smoke_cpu.json --modes eager,arena --hidden 512\n"
                  "  mpirun -n 4 plateau run jobs/smoke_cpu.json");
  command
      ->add_option("-n,--ranks", flags->ranks,
                   "ranks to start; by default what the Slurm allocation says, else one per visible GPU, else 1")
      ->check(CLI::Range(1, 1'000'000));
  add_run_options(*command, flags);
  return [flags] { return run(*flags); };
}

} // namespace plateau
