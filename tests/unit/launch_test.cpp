// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/command.hpp"
#include "orchestrator/launch/context.hpp"
#include "schemas/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plateau {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

surroundings with(environment env, bool pmix_server_runs = false, bool has_terminal = false) {
  return {std::move(env), false, pmix_server_runs, has_terminal};
}

struct place {
  char const* name;
  surroundings around;
  launch_role role;
};

// What each way to type `plateau run` leaves in the environment, as seen on a cluster.
class known_places : public testing::TestWithParam<place> {};

TEST_P(known_places, are_told_apart) { EXPECT_EQ(where_am_i(GetParam().around), GetParam().role); }

environment const batch{
    {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967291"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
environment step(environment more) {
  environment env{{"SLURM_JOB_ID", "7"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_STEP_NUM_TASKS", "4"},
                  {"PMIX_NAMESPACE", "slurm.pmix.7.0"},
                  {"PMIX_RANK", "1"}};
  env.merge(more);
  return env;
}

INSTANTIATE_TEST_SUITE_P(
    launch, known_places,
    testing::Values(
        place{"plain_shell", with({}), launch_role::start_mpirun},
        place{"our_front_end", {{}, true, false, false}, launch_role::rank},
        place{"mpirun", with({{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "1234"}}, true), launch_role::rank},
        place{"shell_that_inherited_an_mpiruns_environment",
              with({{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "1234"}}, false), launch_role::start_mpirun},
        place{"batch_script", with(batch), launch_role::start_srun},
        place{"salloc_without_a_step", with({{"SLURM_JOB_ID", "7"}}), launch_role::start_srun},
        place{"srun_with_pmix", with(step({})), launch_role::rank},
        place{"shell_under_srun_pty", with(step({{"SLURM_PTY_PORT", "33000"}}), false, true),
              launch_role::start_mpirun},
        place{"batch_script_submitted_from_a_step",
              with({{"SLURM_JOB_ID", "8"}, {"PMIX_NAMESPACE", "slurm.pmix.7.0"}, {"PMIX_RANK", "0"}}),
              launch_role::start_srun}),
    [](auto const& p) { return p.param.name; });

TEST(where_am_i, refuses_tasks_that_cannot_find_each_other_and_says_how_to_launch_instead) {
  auto env = step({});
  env.erase("PMIX_NAMESPACE");
  try {
    where_am_i(with(env));
    FAIL() << "not refused";
  } catch (input_error const& e) {
    EXPECT_THAT(e.what(), HasSubstr("srun --mpi=pmix"));
  }
}

TEST(where_am_i, refuses_processes_of_another_mpis_launcher) {
  EXPECT_THROW(where_am_i(with({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}})), input_error);
  EXPECT_EQ(where_am_i(with({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}})), launch_role::start_mpirun);
}

TEST(launch_command, lets_ranks_use_all_cores_and_starts_as_many_as_asked_for) {
  launch_plan plan;
  plan.ranks = 3;
  plan.program = {"plateau", "run", "job.json"};
  EXPECT_THAT(launch_command(plan), ElementsAre("mpirun", "--bind-to", "none", "-n", "3", "--host", "localhost:3",
                                                "plateau", "run", "job.json"));
}

TEST(launch_command, leaves_the_hosts_to_the_user_who_names_some) {
  launch_plan plan;
  plan.launcher_args = {"--hostfile", "hosts"};
  EXPECT_THAT(launch_command(plan), ElementsAre("mpirun", "--bind-to", "none", "-n", "1", "--hostfile", "hosts"));
}

TEST(launch_command, gives_srun_pmix_and_kill_on_bad_exit) {
  launch_plan plan;
  plan.role = launch_role::start_srun;
  EXPECT_THAT(launch_command(plan), IsSupersetOf({"srun", "--mpi=pmix", "--kill-on-bad-exit=1"}));
}

launch_plan const on_named_hosts{launch_role::start_mpirun, 2, {"--host", "a,b"}, {}};

TEST(launch_environment, needs_no_ssh_on_this_host_alone) {
  EXPECT_EQ(launch_environment({}, {}, false), (environment{{"OMPI_MCA_plm", "isolated"}}));
  EXPECT_EQ(launch_environment({}, {{"OMPI_MCA_plm", "rsh"}}, false), (environment{{"OMPI_MCA_plm", "rsh"}}));
}

TEST(launch_environment, hides_an_outer_launcher_from_mpirun_and_lets_root_run_it) {
  auto const env = launch_environment(on_named_hosts, {{"PMIX_RANK", "0"}, {"SLURM_JOB_ID", "7"}, {"HOME", "/"}}, true);
  EXPECT_EQ(env,
            (environment{{"HOME", "/"}, {"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}));
}

TEST(launch_environment, keeps_the_users_settings_of_open_mpi_but_not_those_of_an_outer_mpirun) {
  environment const set_by_the_user{{"OMPI_MCA_btl", "tcp,self"}, {"PMIX_MCA_gds", "hash"}};
  EXPECT_EQ(launch_environment(on_named_hosts, set_by_the_user, false), set_by_the_user);
  auto left_by_mpirun = set_by_the_user;
  left_by_mpirun["OMPI_COMM_WORLD_SIZE"] = "2";
  EXPECT_EQ(launch_environment(on_named_hosts, left_by_mpirun, false), environment{});
}

TEST(rank_count, is_what_was_asked_for_else_the_allocations_else_one_per_gpu) {
  EXPECT_EQ(rank_count(5, launch_role::start_mpirun, {}, 8), 5);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_NTASKS", "16"}}, 0), 16);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_GPUS_ON_NODE", "4"}}, 0), 8);
  EXPECT_EQ(rank_count({}, launch_role::start_mpirun, {{"SLURM_NTASKS", "16"}}, 2), 2);
  EXPECT_EQ(rank_count({}, launch_role::start_mpirun, {}, 0), 1);
}

TEST(shell_text, can_be_typed_in_a_shell) {
  EXPECT_EQ(shell_text({"plateau", "run", "my job.json", "it's", ""}), "plateau run 'my job.json' 'it'\\''s' ''");
}

} // namespace
} // namespace plateau
