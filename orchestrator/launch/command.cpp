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

} // namespace

std::int64_t rank_count(std::optional<std::int64_t> asked, launch_role role, environment const& env,
                        std::int64_t visible_gpus) {
  if (asked) return *asked;
  if (role == launch_role::start_srun) {
    if (auto const tasks = number(env, "SLURM_NTASKS"); tasks > 0) return tasks;
    if (auto const gpus = number(env, "SLURM_GPUS_ON_NODE"); gpus > 0)
      return std::max<std::int64_t>(1, number(env, "SLURM_JOB_NUM_NODES")) * gpus;
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
  if (plan.role == launch_role::start_srun) return env;
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
