// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/cli/command_line.hpp"
#include "orchestrator/cli/job_fields.hpp"
#include "orchestrator/cli/programs.hpp"
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/launch/batch_script.hpp"
#include "orchestrator/launch/command.hpp"
#include "orchestrator/process/child.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>

namespace plateau {

namespace {

namespace fs = std::filesystem;

struct submit_flags {
  std::string job_file;
  std::vector<job_override> fields; ///< as typed
  std::string folder = "runs";
  std::optional<std::int64_t> tasks_per_node, gpus_per_node;
  std::optional<std::string> fail_on;
  std::optional<double> grace;
  bool allow_moved = false, dry_run = false;
  batch_request request; ///< the options that go into the script as they are
};

// The user's site file: $PLATEAU_SITE, else ~/.config/plateau/site.sh, which need not be there.
std::string site_text() {
  if (auto const* named = std::getenv("PLATEAU_SITE")) return *named == '\0' ? "" : read_text(named);
  auto const* const config = std::getenv("XDG_CONFIG_HOME");
  auto const* const home = std::getenv("HOME");
  if (config == nullptr && home == nullptr) return "";
  auto const path = (config != nullptr ? fs::path(config) : fs::path(home) / ".config") / "plateau" / "site.sh";
  std::error_code ignored;
  return fs::exists(path, ignored) ? read_text(path) : "";
}

/// What a submission leaves beside the run folders: the job as it is now, and the script.
struct submitted_files {
  fs::path job, script, said;
};

submitted_files files_of(submit_flags const& flags, std::string const& job_name) {
  auto const stem = (fs::absolute(flags.folder).lexically_normal() / new_run_id(job_name)).string();
  return {stem + ".job.json", stem + ".sh", stem + ".sbatch"};
}

batch_request request_of(submit_flags const& flags, std::string const& job_name, submitted_files const& files) {
  auto request = flags.request;
  if (!flags.tasks_per_node && !flags.gpus_per_node)
    throw input_error("how many ranks on each node? say --gpus-per-node (a rank for each GPU), or --ntasks-per-node "
                      "without GPUs");
  request.gpus_per_node = flags.gpus_per_node.value_or(0);
  request.tasks_per_node = flags.tasks_per_node.value_or(request.gpus_per_node);
  request.name = safe_for_a_file_name(job_name);
  request.site = site_text();
  request.plateau = this_program().string();
  request.job_file = files.job.string();
  request.folder = files.job.parent_path().string();
  if (flags.fail_on) request.run_flags.push_back("--fail-on=" + *flags.fail_on);
  if (flags.grace) {
    constexpr double to_conclude = 60; // the results are made after the grace
    request.run_flags.push_back("--grace=" + std::to_string(*flags.grace));
    request.warning_seconds =
        std::max(request.warning_seconds, static_cast<std::int64_t>(std::ceil(*flags.grace + to_conclude)));
  }
  if (flags.allow_moved) request.resume_flags.push_back("--allow-moved");
  return request;
}

// The job's number, which sbatch says on a line of its own, perhaps with the cluster's name: "4711;cluster".
std::string job_id_in(std::string const& said) {
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    auto id = line.substr(0, line.find(';'));
    if (!id.empty() && id.find_first_not_of("0123456789") == std::string::npos) return id;
  }
  throw input_error("sbatch said no job id, but: " + said + "; look with squeue whether it took the job");
}

// What a launcher left in this process's environment would reach the batch script, and its MPI would take itself for a
// part of that launcher's job.
void leave_the_launcher_behind() {
  auto const all = current_environment();
  auto const kept = for_own_slurm(all);
  for (auto const& [name, value] : all)
    if (!kept.contains(name)) unsetenv(name.c_str());
}

std::string submit_script(submitted_files const& files) {
  leave_the_launcher_behind();
  constexpr auto longest = std::chrono::minutes(10); // a busy controller
  int code = 0;
  try {
    code = run_child({"sbatch", "--parsable", files.script.string()}, files.said, longest);
  } catch (std::system_error const& e) {
    throw input_error("cannot start sbatch (" + e.code().message() +
                      "); is this a login node of a Slurm cluster? --dry-run shows the script anywhere");
  }
  auto const said = read_text(files.said);
  if (code != 0) throw input_error("sbatch did not take the job: " + said + "nothing was submitted");
  return job_id_in(said);
}

// Slurm grants what the job cannot use, and starts what cannot run, without a word.
std::optional<std::string> note_about_gpus(job const& j, batch_request const& request) {
  if (j.device == "cpu" && request.gpus_per_node > 0)
    return "the job's device is cpu: the GPUs that it asks Slurm for will have nothing to do";
  if (j.device == "cuda" && request.gpus_per_node == 0 && request.sbatch.empty())
    return "the job's device is cuda, and it asks Slurm for no GPUs (--gpus-per-node)";
  return std::nullopt;
}

void tell(batch_request const& request, std::string const& id) {
  auto const ranks = request.nodes * request.tasks_per_node;
  auto const output = batch_output(request, id);
  std::cout << "job " << id << ": " << ranks << (ranks == 1 ? " rank on " : " ranks on ") << request.nodes
            << (request.nodes == 1 ? " node" : " nodes") << (request.array ? ", in each task of the array" : "")
            << "\nstate   squeue --job " << id << "\nfollow  tail -F "
            << (request.array ? output : shell_text({output})) << "\nstop    scancel --batch --signal=TERM " << id
            << "   (keeps what is finished)\n"
            << batch_run_folder(request, id) << std::endl;
}

exit_code submit(submit_flags const& flags) {
  auto const j = parse_job(read_text(flags.job_file), flags.job_file, flags.fields);
  refuse_gates_without_a_soak(flags.fail_on ? parse_gates(*flags.fail_on) : default_gates(), j);
  auto const files = files_of(flags, j.name);
  auto const request = request_of(flags, j.name, files);
  auto const script = batch_script(request);
  if (auto const note = note_about_gpus(j, request)) std::cerr << "note: " << *note << '\n';
  if (flags.dry_run) {
    std::cout << script;
    std::cerr << "note: plateau submit writes the job to " << request.job_file << " and makes " << request.folder
              << "; a script of your own needs a job and a folder that are there\n";
    return exit_code::good;
  }
  bool const new_folder = fs::create_directories(request.folder);
  write_durably(files.job, to_json(j).dump(2) + '\n');
  write_durably(files.script, script);
  std::error_code ignored;
  try {
    auto const id = submit_script(files);
    fs::remove(files.said, ignored);
    tell(request, id);
  } catch (...) {
    for (auto const& file : {files.job, files.script, files.said}) fs::remove(file, ignored);
    if (new_folder) fs::remove(request.folder, ignored);
    throw;
  }
  return exit_code::good;
}

void add_resources(CLI::App& command, submit_flags& flags) {
  auto const group = "Resources";
  auto const at_least_1 = fits({{"type", "integer"}, {"minimum", 1}, {"maximum", 1'000'000}});
  auto& r = flags.request;
  command.add_option("--nodes", r.nodes, "nodes; by default 1")->check(at_least_1)->group(group);
  command.add_option("--gpus-per-node", flags.gpus_per_node, "GPUs on each node, with a rank for each")
      ->check(at_least_1)
      ->group(group);
  command
      .add_option("--ntasks-per-node", flags.tasks_per_node,
                  "ranks on each node: without GPUs, or with fewer ranks than GPUs")
      ->check(at_least_1)
      ->group(group);
  command.add_option("--cpus-per-task", r.cpus_per_task, "cores for each rank and its worker")
      ->check(at_least_1)
      ->group(group);
  command.add_option("--partition", r.partition, "as for sbatch")->group(group);
  command.add_option("--time", r.time, "as for sbatch; a job that it cuts short is requeued, and goes on")
      ->group(group);
  command.add_option("--account", r.account, "as for sbatch")->group(group);
  command.add_option("--constraint", r.constraint, "as for sbatch")->group(group);
  command.add_option("--qos", r.qos, "as for sbatch")->group(group);
  command
      .add_option("--array", r.array, "as for sbatch, like 0-3: a run in each task; plateau merge makes one of them")
      ->group(group);
  command
      .add_flag("--share-nodes", r.share_nodes,
                "let other jobs use the nodes, too: cheaper, but they disturb what is timed")
      ->group(group);
  command.add_option("SBATCH", r.sbatch, "after --: further options of sbatch, each one word, like --mem=0")
      ->group(group);
}

} // namespace

run_subcommand add_submit(CLI::App& program) {
  auto flags = std::make_shared<submit_flags>();
  auto* command = program.add_subcommand("submit", "Give a job to Slurm as a batch job");
  command->footer("Examples:\n"
                  "  plateau submit jobs/smoke_cpu.json --nodes 2 --ntasks-per-node 2 --time 00:10:00\n"
                  "  plateau submit job.json --nodes 2 --gpus-per-node 8 --hidden 4096 -- --mem=0 --reservation=bench\n"
                  "  plateau submit job.json --gpus-per-node 4 --array 0-3 --dry-run");
  command->add_option("JOB", flags->job_file, "job file; it is copied, so that later changes do not matter")
      ->required();
  command->add_option("-o,--output", flags->folder, "where the run folders go, <name>-<job id>; by default runs");
  command->add_flag("--dry-run", flags->dry_run, "print the batch script, submit nothing");
  command->add_option("--fail-on", flags->fail_on, "as for run: " + check_names() + ", or none; by default growing")
      ->check(read_by(parse_gates));
  command
      ->add_option("--grace", flags->grace,
                   "seconds that the current case gets when time is up; Slurm's warning comes 60 s earlier than that")
      ->check(fits({{"type", "number"}, {"minimum", 0}, {"maximum", 86400}}));
  command->add_flag("--allow-moved", flags->allow_moved, "a requeued job may go on on other nodes or GPUs");
  add_resources(*command, *flags);
  add_job_fields(*command, flags->fields);
  return [flags] { return submit(*flags); };
}

} // namespace plateau
