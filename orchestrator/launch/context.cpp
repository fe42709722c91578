// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/context.hpp"

#include "schemas/error.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <unistd.h>

extern char** environ;

namespace plateau {

namespace {

std::string value(environment const& env, char const* name) {
  auto const found = env.find(name);
  return found == env.end() ? std::string() : found->second;
}

bool is_set(environment const& env, char const* name) { return env.contains(name); }

std::int64_t number(environment const& env, char const* name) {
  return std::strtoll(value(env, name).c_str(), nullptr, 10);
}

// Slurm numbers its steps from 0; the batch script, the interactive shell and others have numbers from here
// on.
bool in_numbered_step(environment const& env) {
  constexpr unsigned long first_special_step = 0xfffffff0;
  auto const step = value(env, "SLURM_STEP_ID");
  return !step.empty() && std::strtoul(step.c_str(), nullptr, 10) < first_special_step;
}

// Slurm's PMIx serves this very step.
bool of_this_step(environment const& env) {
  return in_numbered_step(env) &&
         value(env, "PMIX_NAMESPACE") == "slurm.pmix." + value(env, "SLURM_JOB_ID") + "." + value(env, "SLURM_STEP_ID");
}

} // namespace

environment current_environment() {
  environment env;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (auto const* equals = std::strchr(*entry, '='))
      env.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)), equals + 1);
  return env;
}

surroundings look_around(bool as_rank) {
  surroundings around{current_environment(), as_rank, false, false};
  if (auto const folder = value(around.env, "PMIX_SERVER_TMPDIR"); !folder.empty()) {
    std::error_code ignored;
    around.pmix_server_runs = std::filesystem::is_directory(folder, ignored);
  }
  if (int const fd = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY); fd >= 0) {
    around.has_terminal = true;
    ::close(fd);
  }
  return around;
}

launch_role where_am_i(surroundings const& around) {
  auto const& env = around.env;
  if (around.as_rank) return launch_role::rank;
  auto const pmix_namespace = value(env, "PMIX_NAMESPACE");
  bool const of_slurm = pmix_namespace.starts_with("slurm.pmix.");
  if (is_set(env, "OMPI_COMM_WORLD_SIZE") && !of_slurm && around.pmix_server_runs) return launch_role::rank;

  if (in_numbered_step(env)) {
    bool const shell = is_set(env, "SLURM_PTY_PORT") && around.has_terminal;
    if (shell) return launch_role::start_mpirun; // a step of its own would wait for what this one holds
    if (of_this_step(env)) return launch_role::rank;
    if (number(env, "SLURM_STEP_NUM_TASKS") > 1 || is_set(env, "PMI_RANK") || is_set(env, "MPI_LOCALRANKID"))
      throw input_error("this is one of several tasks of a Slurm step that has no PMIx, so the tasks cannot find each "
                        "other; use srun --mpi=pmix, or type plateau run without srun");
  }
  if (!is_set(env, "SLURM_JOB_ID") && number(env, "PMI_SIZE") > 1)
    throw input_error("this is one of several processes of an mpirun or mpiexec that is not Open MPI's, so they cannot "
                      "find each other; use Open MPI's mpirun, or type plateau run without one");
  return is_set(env, "SLURM_JOB_ID") ? launch_role::start_srun : launch_role::start_mpirun;
}

environment for_own_launcher(environment env) {
  bool const rewritten = env.contains("OMPI_COMM_WORLD_SIZE") || env.contains("PMIX_NAMESPACE");
  auto clean = without_launcher(env);
  for (auto const& [name, value] : env)
    if (!rewritten && (name.starts_with("OMPI_MCA_") || name.starts_with("PMIX_MCA_"))) clean.emplace(name, value);
  return clean;
}

environment for_own_slurm(environment env, bool in_allocation) {
  auto clean = for_own_launcher(env);
  for (auto const& [name, value] : env)
    if (name == "SLURM_CONF" || name == "SLURM_CLUSTERS" || (in_allocation && name.starts_with("SLURM_")))
      clean.emplace(name, value);
  return clean;
}

std::optional<std::int64_t> launched_ranks(environment const& env) {
  auto const told = number(env, of_this_step(env) ? "SLURM_STEP_NUM_TASKS" : "OMPI_COMM_WORLD_SIZE");
  return told > 0 ? std::optional(told) : std::nullopt;
}

environment without_launcher(environment env) {
  constexpr std::array<std::string_view, 4> prefixes{"OMPI_", "PMIX_", "PMI_", "SLURM_"};
  std::erase_if(env, [&](auto const& entry) {
    for (auto const prefix : prefixes)
      if (entry.first.starts_with(prefix)) return true;
    return false;
  });
  return env;
}

} // namespace plateau
