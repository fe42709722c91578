// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/command.hpp"

#include <algorithm>
#include <cstdlib>

namespace plateau {

namespace {

std::int64_t number(environment const& env, char const* name) {
  auto const found = env.find(name);
  return found == env.end() ? 0 : std::strtoll(found->second.c_str(), nullptr, 10);
}

// GPUs on each node of the allocation: a number, after a type perhaps ("a100:4"). A batch script has the first
// variable, a shell under salloc the second.
std::int64_t gpus_per_node(environment const& env) {
  if (auto const gpus = number(env, "SLURM_GPUS_ON_NODE"); gpus > 0) return gpus;
  auto const asked = env.find("SLURM_GPUS_PER_NODE");
  if (asked == env.end()) return 0;
  return std::strtoll(asked->second.c_str() + asked->second.rfind(':') + 1, nullptr,
                      10); // no ':' is npos, and npos + 1 is 0
}

environment srun_environment(environment env) {
  env = for_own_slurm(std::move(env), true);
  auto const set_if_absent = [&env](char const* name, std::string const& value) { env.emplace(name, value); };
  // an allocation that names no tasks has the cores of one on each node, and the ranks are asleep most of the time
  if (!env.contains("SLURM_NTASKS")) set_if_absent("SLURM_OVERCOMMIT", "1");
  // from Slurm 22.05 on srun no longer takes this over from the allocation
  else if (auto const cpus = env.find("SLURM_CPUS_PER_TASK"); cpus != env.end())
    set_if_absent("SRUN_CPUS_PER_TASK", cpus->second);
  // a step within a step would wait for ever for what that one holds
  if (env.contains("SLURM_STEP_ID")) set_if_absent("SLURM_OVERLAP", "1");
  return env;
}

} // namespace

std::int64_t rank_count(std::optional<std::int64_t> asked, launch_role role, environment const& env,
                        std::int64_t visible_gpus) {
  if (asked) return *asked;
  if (role == launch_role::start_srun) {
    if (auto const tasks = number(env, "SLURM_NTASKS"); tasks > 0) return tasks;
    return std::max<std::int64_t>(1, number(env, "SLURM_JOB_NUM_NODES")) *
           std::max<std::int64_t>(1, gpus_per_node(env));
  }
  return std::max<std::int64_t>(1, visible_gpus);
}

std::vector<std::string> launch_command(launch_plan const& plan) {
  auto const ranks = std::to_string(plan.ranks);
  std::vector<std::string> command;
  if (plan.role == launch_role::start_srun) {
    // without kill-on-bad-exit the survivors of a dead rank get no warning at all
    command = {"srun", "--mpi=pmix", "--kill-on-bad-exit=1", "-n", ranks};
  } else {
    // left to itself, mpirun pins each of one or two ranks to a single core, and with it all of its worker's
    // threads
    command = {"mpirun", "--bind-to", "none", "-n", ranks};
    // as many slots as ranks: mpirun counts cores, and a rank here is asleep most of the time
    if (plan.launcher_args.empty()) command.insert(command.end(), {"--host", "localhost:" + ranks});
  }
  command.insert(command.end(), plan.launcher_args.begin(), plan.launcher_args.end());
  command.insert(command.end(), plan.program.begin(), plan.program.end());
  return command;
}

environment launch_environment(launch_plan const& plan, environment env, bool as_root) {
  if (plan.role == launch_role::start_srun) return srun_environment(std::move(env));
  env = for_own_launcher(std::move(env));
  if (plan.launcher_args.empty()) env.emplace("OMPI_MCA_plm", "isolated"); // this host alone: mpirun needs no ssh
  if (as_root) env["OMPI_ALLOW_RUN_AS_ROOT"] = env["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  return env;
}

std::string shell_text(std::vector<std::string> const& command) {
  constexpr auto plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  std::string text;
  for (auto const& word : command) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (char const c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

} // namespace plateau
