// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/run.hpp"
#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/cli/command_line.hpp"
#include "orchestrator/cli/front_end.hpp"
#include "orchestrator/cli/job_fields.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/launch/command.hpp"
#include "orchestrator/rank/run.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/folder_lock.hpp"
#include "orchestrator/store/resume.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/codec.hpp"
#include "schemas/host.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <system_error>

namespace plateau {

namespace {

job read_job(run_flags const& flags) {
  auto j = parse_job(read_text(*flags.job_file), *flags.job_file, flags.fields);
  return flags.gpu ? job_to_rehearse(std::move(j)) : j;
}

std::optional<gates> gates_of(run_flags const& flags) {
  return flags.fail_on ? std::optional(parse_gates(*flags.fail_on)) : std::nullopt;
}

std::vector<std::string> words_of_a_new_run(run_flags const& flags, std::filesystem::path const& folder) {
  std::vector<std::string> words{std::filesystem::absolute(*flags.job_file).string()};
  for (auto const& [field, text] : flags.fields) words.push_back(flag_of(field) + "=" + text);
  words.insert(words.end(), {"-o", folder.string()});
  if (!flags.folder) words.push_back("--folder-is-ours");
  return words;
}

// The job is the run's own, and was compared with what was typed.
std::vector<std::string> words_of_a_resume(run_flags const& flags, std::filesystem::path const& folder) {
  std::vector<std::string> words{"--resume", folder.string()};
  if (flags.allow_moved) words.push_back("--allow-moved");
  if (flags.retry_failed) words.push_back("--retry-failed");
  return words;
}

// What every rank runs: this program again, told that it is a rank.
std::vector<std::string> rank_program(run_flags const& flags, launch_plan const& plan,
                                      std::vector<std::string> const& what) {
  std::vector<std::string> words{this_program().string(), flags.subcommand};
  words.insert(words.end(), what.begin(), what.end());
  words.insert(words.end(),
               {"--grace", std::to_string(flags.grace), "--worker", worker_program(flags.worker).string(), "--as-rank",
                "--typed", json(this_command_line()).dump(-1, ' ', false, json::error_handler_t::replace),
                "--started-by", plan.role == launch_role::start_srun ? "srun" : "mpirun", "--expected-ranks",
                std::to_string(plan.ranks)});
  if (flags.fail_on) words.push_back("--fail-on=" + *flags.fail_on);
  if (flags.gpu) words.push_back("--gpu=" + flags.gpu->spec());
  if (!flags.blind_to.empty()) words.push_back("--blind-to=" + flags.blind_to);
  if (flags.allow_shared_gpu) words.push_back("--allow-shared-gpu");
  return words;
}

launch_role role_of(run_flags const& flags) {
  auto const role = where_am_i(look_around(flags.as_rank));
  if (role == launch_role::rank || !flags.launcher) return role;
  return *flags.launcher == "srun" ? launch_role::start_srun : launch_role::start_mpirun;
}

exit_code dry_run(job const& j, std::vector<case_id> const& cases, launch_plan const& plan) {
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

exit_code as_rank(run_flags const& flags) {
  rank_options options;
  if (flags.job_file) options.job_file = *flags.job_file;
  if (flags.resume) options.resume = resume_options{*flags.resume, flags.allow_moved, flags.retry_failed};
  options.overrides = flags.fields;
  if (flags.folder) options.folder = *flags.folder;
  options.folder_is_ours = flags.folder_is_ours || !flags.folder;
  options.worker = worker_program(flags.worker);
  options.launcher = flags.started_by;
  options.expected_ranks = flags.expected_ranks ? flags.expected_ranks : launched_ranks(current_environment());
  options.fail_on = gates_of(flags);
  options.allow_shared_gpu = flags.allow_shared_gpu;
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

exit_code begin(run_flags const& flags, launch_role role) {
  auto const j = read_job(flags);
  refuse_gates_without_a_soak(gates_of(flags).value_or(default_gates()), j);
  launch_plan plan{role, rank_count(flags.ranks, role, current_environment(), visible_gpus()), flags.launch_args, {}};
  auto const folder = std::filesystem::absolute(flags.folder ? std::filesystem::path(*flags.folder)
                                                             : std::filesystem::path("runs") / new_run_id(j.name));
  if (!is_utf8(folder.string()))
    throw input_error(as_utf8(folder.string()) +
                      ": the path of the run folder must be UTF-8; choose another one with -o");
  plan.program = rank_program(flags, plan, words_of_a_new_run(flags, folder));
  if (flags.dry_run) return dry_run(j, cases_of(j), plan);
  refuse_if_taken(folder);
  return start_ranks(plan, folder, 0);
}

// Every case is there: nothing is started. What a killed run could not make of them is made now.
exit_code show_complete(earlier_run const& run, std::optional<gates> const& asked) {
  auto const& folder = run.folder;
  std::cerr << folder.path.string() << ": every case is there; nothing is left to run\n";
  auto outcome = read_outcome(folder);
  bool const whole = std::filesystem::exists(folder.summary_json()) && std::filesystem::exists(folder.run_h5());
  if (!outcome || !whole || asked || outcome->exit_code == static_cast<std::int64_t>(exit_code::incomplete)) {
    folder_lock const only_here(folder);
    if (asked) judge_by(run, *asked);
    auto const assembled = assemble(folder, run_outcome{0, "", utc_now()});
    for (auto const& complaint : assembled.complaints) std::cerr << complaint << '\n';
    outcome = assembled.record.outcome;
    write_outcome(folder, *outcome);
  }
  show_end_of_run(folder.path);
  return static_cast<exit_code>(outcome->exit_code);
}

exit_code resume(run_flags const& flags, launch_role role) {
  std::optional<std::filesystem::path> job_file;
  if (flags.job_file) job_file = *flags.job_file;
  auto const run = open_to_resume({*flags.resume, job_file, flags.fields, flags.ranks});
  if (auto const asked = gates_of(flags)) refuse_gates_without_a_soak(*asked, run.run);
  launch_plan plan{role, std::ssize(run.info.ranks), flags.launch_args, {}};
  plan.program = rank_program(flags, plan, words_of_a_resume(flags, run.folder.path));
  if (flags.dry_run) return dry_run(run.run, plan_resume(run, flags.retry_failed).to_run, plan);
  // all results are read only if none seems to be missing
  if (cases_by_name(run).size() == cases_of(run.run).size() && plan_resume(run, flags.retry_failed).to_run.empty())
    return show_complete(run, gates_of(flags));
  return start_ranks(plan, run.folder.path, std::ssize(attempts_of(run.info)));
}

} // namespace

exit_code run(run_flags const& flags) {
  refuse_without_a_current_folder();
  auto const role = role_of(flags);
  if (role == launch_role::rank && flags.dry_run)
    throw input_error("--dry-run starts nothing, so it needs no launcher; type it without mpirun or srun");
  if (!flags.job_file && !flags.resume)
    throw input_error(
        "which job? plateau run JOB, as in plateau run jobs/smoke_cpu.json -n 2; or --resume RUN to go on "
        "with an earlier run");
  if (role == launch_role::rank) return as_rank(flags);
  return flags.resume ? resume(flags, role) : begin(flags, role);
}

void add_run_options(CLI::App& command, std::shared_ptr<run_flags> const& flags) {
  command.add_option("-o,--output", flags->folder, "the run folder; by default runs/<time>-<name>-<id>");
  command.add_flag("--dry-run", flags->dry_run, "list the cases and the launch command, start nothing");
  command.add_option("--launcher", flags->launcher, "mpirun or srun, instead of what fits the place")
      ->check(fits({{"enum", {"mpirun", "srun"}}}));
  command
      .add_option("--launch-args", flags->launch_args,
                  "further arguments of the launcher, once each; with any, mpirun's hosts are yours to choose, too")
      ->allow_extra_args(false);
  command
      .add_option("--fail-on", flags->fail_on,
                  "checks whose findings make the run bad, exit code 4: " + check_names() +
                      ", or none; by default growing")
      ->check(read_by(parse_gates));
  command.add_option("--grace", flags->grace, "seconds that the current case gets after Ctrl-C")
      ->check(fits({{"type", "number"}, {"minimum", 0}, {"maximum", 86400}}));
  command.add_option("--worker", flags->worker, "")->group("");
  command.add_flag("--as-rank", flags->as_rank, "")->group("");
  command.add_flag("--folder-is-ours", flags->folder_is_ours, "")->group("");
  command.add_option("--started-by", flags->started_by, "")->group("");
  command.add_option("--typed", flags->typed, "")->group("");
  command.add_option("--expected-ranks", flags->expected_ranks, "")->group("");
  add_job_fields(command, flags->fields);
}

run_subcommand add_run(CLI::App& program) {
  auto flags = std::make_shared<run_flags>();
  auto* command = program.add_subcommand("run", "Run a job and gather its results");
  command->footer("Examples:\n"
                  "  plateau run jobs/smoke_cpu.json -n 2\n"
                  "  plateau run jobs/smoke_cpu.json --modes eager,arena --hidden 512\n"
                  "  mpirun -n 4 plateau run jobs/smoke_cpu.json\n"
                  "  plateau run --resume runs/latest");
  command->add_option("JOB", flags->job_file, "job file; an earlier run's summary.json is one, too");
  command
      ->add_option("-n,--ranks", flags->ranks,
                   "ranks to start; by default what the Slurm allocation says, else one per visible GPU, else 1")
      ->check(fits({{"type", "integer"}, {"minimum", 1}, {"maximum", 1'000'000}}));
  add_run_options(*command, flags);
  auto* resumed = command
                      ->add_option("--resume", flags->resume,
                                   "go on with the run in this folder: only the cases that are not there from every "
                                   "rank are run; JOB may be left out")
                      ->excludes(command->get_option("--output"));
  command
      ->add_flag("--allow-moved", flags->allow_moved,
                 "resume on other devices than before; the cases are marked as not comparable")
      ->needs(resumed);
  command
      ->add_flag("--retry-failed", flags->retry_failed,
                 "resume: run the cases again that did not pass, skipped ones too")
      ->needs(resumed);
  command->add_flag(
      "--allow-shared-gpu", flags->allow_shared_gpu,
      "run although ranks have the same GPU, each seeing that one device only (CUDA_VISIBLE_DEVICES); the "
      "run is marked as not comparable");
  command->add_option("--blind-to", flags->blind_to, "")->group("");
  return [flags] { return run(*flags); };
}

} // namespace plateau
