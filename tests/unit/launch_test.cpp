// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/batch_script.hpp"
#include "orchestrator/launch/command.hpp"
#include "orchestrator/launch/context.hpp"
#include "schemas/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

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
environment step(environment const& more) {
  environment env{{"SLURM_JOB_ID", "7"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_STEP_NUM_TASKS", "4"},
                  {"PMIX_NAMESPACE", "slurm.pmix.7.0"},
                  {"PMIX_RANK", "1"}};
  for (auto const& [name, value] : more) env[name] = value;
  return env;
}
environment step_without_pmix(environment const& more) {
  auto env = step(more);
  env.erase("PMIX_NAMESPACE");
  env.erase("PMIX_RANK");
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
        place{"shell_under_srun_pty_without_pmix", with(step_without_pmix({{"SLURM_PTY_PORT", "33000"}}), false, true),
              launch_role::start_mpirun},
        place{"ranks_that_a_shell_under_srun_pty_started_with_srun",
              with(step({{"SLURM_PTY_PORT", "33000"}}), false, false), launch_role::rank},
        place{"one_task_without_pmix", with(step_without_pmix({{"SLURM_STEP_NUM_TASKS", "1"}})),
              launch_role::start_srun},
        place{"interactive_step", with({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "4294967290"}}, false, true),
              launch_role::start_srun},
        place{"mpirun_in_an_allocation",
              with({{"SLURM_JOB_ID", "7"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_STEP_NUM_TASKS", "2"},
                    {"OMPI_COMM_WORLD_SIZE", "4"},
                    {"PMIX_NAMESPACE", "1234"}},
                   true),
              launch_role::rank},
        place{"srun_from_a_shell_that_mpirun_started", with(step({{"OMPI_COMM_WORLD_SIZE", "2"}}), true),
              launch_role::rank},
        place{"salloc_typed_under_mpirun",
              with({{"SLURM_JOB_ID", "7"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "1234"}}, false),
              launch_role::start_srun},
        place{"batch_script_submitted_from_a_step", with(step({{"SLURM_JOB_ID", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}})),
              launch_role::start_srun},
        place{"batch_script_submitted_from_a_shell_under_srun_pty",
              with(step({{"SLURM_JOB_ID", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PTY_PORT", "33000"}})),
              launch_role::start_srun}),
    [](auto const& p) { return p.param.name; });

TEST(where_am_i, refuses_tasks_that_cannot_find_each_other_and_says_how_to_launch_instead) {
  try {
    where_am_i(with(step_without_pmix({})));
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

TEST(launch_environment, keeps_srun_in_its_allocation_and_fills_in_what_srun_would_forget) {
  launch_plan plan;
  plan.role = launch_role::start_srun;
  auto env =
      launch_environment(plan, {{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_CPUS_PER_TASK", "8"}}, true);
  EXPECT_EQ(
      env,
      (environment{
          {"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_CPUS_PER_TASK", "8"}, {"SRUN_CPUS_PER_TASK", "8"}}));
  env = launch_environment(plan, {{"SLURM_JOB_ID", "7"}, {"SLURM_CPUS_PER_TASK", "8"}}, true);
  EXPECT_EQ(env["SLURM_OVERCOMMIT"], "1") << "of two ranks on a node each gets half of what was asked for";
  EXPECT_FALSE(env.contains("SRUN_CPUS_PER_TASK"));
  EXPECT_EQ(launch_environment(plan, step({}), true)["SLURM_OVERLAP"], "1");
}

TEST(launch_environment, hides_an_outer_mpirun_from_srun) {
  launch_plan plan;
  plan.role = launch_role::start_srun;
  auto const env = launch_environment(
      plan, {{"SLURM_NTASKS", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_MCA_ess", "pmi"}, {"PMIX_RANK", "0"}}, true);
  EXPECT_EQ(env, (environment{{"SLURM_NTASKS", "1"}}));
}

TEST(for_own_slurm, leaves_a_job_behind_but_not_its_cluster) {
  EXPECT_EQ(for_own_slurm({{"SLURM_CONF", "/etc/slurm.conf"},
                           {"SLURM_JOB_ID", "7"},
                           {"SLURM_PTY_PORT", "33000"},
                           {"PMIX_RANK", "0"},
                           {"HOME", "/"}}),
            (environment{{"SLURM_CONF", "/etc/slurm.conf"}, {"HOME", "/"}}));
}

TEST(launched_ranks, is_what_the_launcher_of_this_very_rank_says) {
  EXPECT_EQ(launched_ranks({}), std::nullopt);
  EXPECT_EQ(launched_ranks({{"OMPI_COMM_WORLD_SIZE", "3"}}), 3);
  EXPECT_EQ(launched_ranks(step({{"OMPI_COMM_WORLD_SIZE", "3"}})), 4) << "srun, from a shell that mpirun started";
  EXPECT_EQ(launched_ranks({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}), 3)
      << "mpirun in an allocation: the step is that of its daemons";
}

TEST(rank_count, is_what_was_asked_for_else_the_allocations_else_one_per_gpu) {
  EXPECT_EQ(rank_count(5, launch_role::start_mpirun, {}, 8), 5);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_NTASKS", "16"}}, 0), 16);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_GPUS_ON_NODE", "4"}}, 0), 8);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_GPUS_PER_NODE", "2"}}, 0),
            4);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_GPUS_PER_NODE", "a100:4"}}, 0), 4);
  EXPECT_EQ(rank_count({}, launch_role::start_srun, {{"SLURM_JOB_NUM_NODES", "2"}}, 8), 2)
      << "the GPUs of a login node are none of its";
  EXPECT_EQ(rank_count({}, launch_role::start_mpirun, {{"SLURM_NTASKS", "16"}}, 2), 2);
  EXPECT_EQ(rank_count({}, launch_role::start_mpirun, {}, 0), 1);
}

TEST(shell_text, can_be_typed_in_a_shell) {
  EXPECT_EQ(shell_text({"plateau", "run", "my job.json", "it's", ""}), "plateau run 'my job.json' 'it'\\''s' ''");
}

batch_request small_request() {
  batch_request r;
  r.name = "smoke";
  r.nodes = 2;
  r.tasks_per_node = 4;
  r.plateau = "/opt/plateau/bin/plateau";
  r.job_file = "/data/runs/a.job.json";
  r.folder = "/data/runs";
  return r;
}

// The script's #SBATCH lines, one a line.
std::string directives_of(batch_request const& request) {
  std::istringstream lines(batch_script(request));
  std::string all;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#SBATCH ")) all += line.substr(8) + "\n";
  return all;
}

TEST(batch_script, asks_for_whole_nodes_and_ranks_by_default) {
  EXPECT_EQ(directives_of(small_request()), "--job-name=plateau-smoke\n--nodes=2\n--ntasks-per-node=4\n--exclusive\n"
                                            "--output=/data/runs/smoke-%j.out\n--open-mode=append\n--requeue\n"
                                            "--signal=B:USR1@120\n");
}

TEST(batch_script, asks_for_what_was_said_and_lets_the_later_word_count) {
  auto r = small_request();
  r.gpus_per_node = 4;
  r.cpus_per_task = 8;
  r.warning_seconds = 660;
  r.partition = "gpu";
  r.time = "01:00:00";
  r.account = "proj";
  r.constraint = "a100&nvlink|[rack1*2]";
  r.qos = "high";
  r.array = "0-3%2";
  r.share_nodes = true;
  r.site = "module load cuda\n#SBATCH --partition=site\nexport A=1";
  r.sbatch = {"--mem=0", "--comment=for the report #3"};
  EXPECT_EQ(directives_of(r),
            "--partition=site\n--job-name=plateau-smoke\n--nodes=2\n--ntasks-per-node=4\n--gpus-per-node=4\n"
            "--cpus-per-task=8\n--partition=gpu\n--time=01:00:00\n--account=proj\n"
            "--constraint=a100&nvlink|[rack1*2]\n--qos=high\n--array=0-3%2\n"
            "--output=/data/runs/smoke-%A_%a.out\n--open-mode=append\n--requeue\n--signal=B:USR1@660\n--mem=0\n"
            "\"--comment=for the report #3\"\n");
  EXPECT_THAT(batch_script(r), HasSubstr("\nmodule load cuda\nexport A=1\n"));
}

TEST(batch_script, has_its_directives_before_the_first_command) {
  auto r = small_request();
  r.site = "module load cuda\n#SBATCH --account=proj\n";
  auto const script = batch_script(r);
  EXPECT_LT(script.rfind("#SBATCH"), script.find("module load"));
  EXPECT_TRUE(script.starts_with("#!/bin/bash\n#SBATCH "));
}

TEST(batch_script, quotes_what_could_break_out_of_it) {
  auto r = small_request();
  r.folder = "/data/$(here) 100%";
  r.job_file = "/data/it's.json";
  r.plateau = "/opt/@job@/plateau";
  r.run_flags = {"--fail-on=growing; rm -rf ."};
  r.resume_flags = {"--allow-moved"};
  auto const script = batch_script(r);
  EXPECT_THAT(script, HasSubstr("runs='/data/$(here) 100%'\n"));
  EXPECT_THAT(script, HasSubstr("job='/data/it'\\''s.json'\n"));
  EXPECT_THAT(script, HasSubstr("plateau=/opt/@job@/plateau\n")) << "what is put in is not filled in again";
  EXPECT_THAT(script, HasSubstr("\"${into[@]}\" '--fail-on=growing; rm -rf .' &\n"));
  EXPECT_THAT(script, HasSubstr("--resume \"$resumed\" --allow-moved)\n"));
  EXPECT_EQ(script.find("@directives@"), std::string::npos);
}

TEST(batch_script, keeps_a_percent_sign_of_a_path_from_becoming_a_number) {
  auto r = small_request();
  r.folder = "/data/100%j";
  EXPECT_THAT(directives_of(r), HasSubstr("--output=/data/100%%j/smoke-%j.out\n"));
}

struct refused_value {
  char const* name;
  void (*spoil)(batch_request&);
  char const* says;
};

std::ostream& operator<<(std::ostream& out, refused_value const& value) { return out << value.name; }

class refused_values : public testing::TestWithParam<refused_value> {};

TEST_P(refused_values, are_refused_in_one_sentence) {
  auto r = small_request();
  GetParam().spoil(r);
  try {
    batch_script(r);
    FAIL() << "not refused";
  } catch (input_error const& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().says));
  }
}

INSTANTIATE_TEST_SUITE_P(
    launch, refused_values,
    testing::Values(refused_value{"a_second_line", [](batch_request& r) { r.partition = "a\nrm -rf ."; },
                                  "needs a text of one line"},
                    refused_value{"a_quotation_mark", [](batch_request& r) { r.account = "a\"b"; }, "without quotes"},
                    refused_value{"a_backslash", [](batch_request& r) { r.qos = "a\\"; }, "without quotes"},
                    refused_value{"an_option_in_two_words",
                                  [](batch_request& r) {
                                    r.sbatch = {"--mem", "0"};
                                  },
                                  "\"0\" is no option of sbatch"},
                    refused_value{"a_folder_with_quotes", [](batch_request& r) { r.folder = "/it's"; },
                                  "without quotes"},
                    refused_value{"more_ranks_than_gpus", [](batch_request& r) { r.gpus_per_node = 2; },
                                  "two ranks would share one"}),
    [](auto const& p) { return p.param.name; });

TEST(batch_run_folder, is_named_by_the_job_so_that_a_requeued_one_finds_it) {
  auto r = small_request();
  EXPECT_EQ(batch_run_folder(r, "17"), "/data/runs/smoke-17");
  EXPECT_EQ(batch_output(r, "17"), "/data/runs/smoke-17.out");
  r.array = "0-3";
  EXPECT_EQ(batch_run_folder(r, "17"), "/data/runs/smoke-17_*");
}

} // namespace
} // namespace plateau
