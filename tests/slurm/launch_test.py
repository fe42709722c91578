# SPDX-License-Identifier: Apache-2.0
"""plateau in every place where it can be typed on a cluster: a login node, an allocation, a batch script, a step."""
import json
import os
import pty
import subprocess

import pytest

from plateau_test import PLATEAU, needs_a_terminal, statuses, write_job
from slurm_cluster import (ALL_PASSED, PATIENCE, assert_nothing_runs, cluster_environment, needs_cluster, output,
                           ranks_of, run_folder, slurm, submit, wait_for_end)

pytestmark = needs_cluster


def on_the_cluster(folder, *command, **fields):
    """A command typed on the login node, in a folder with a small job; it may fail."""
    write_job(folder, **fields)
    return slurm(*command, cwd=folder, env=cluster_environment(), check=False)


def assert_finished(run, ranks, launcher=None):
    assert statuses(run) == ALL_PASSED
    assert [r["rank"] for r in ranks_of(run)] == list(range(ranks))
    assert launcher is None or json.loads((run / "run.json").read_text())["launcher"] == launcher


def test_a_job_is_submitted_and_becomes_a_report(tmp_path):
    job = submit(tmp_path, "--time", "00:10:00", "--cpus-per-task", "2")
    assert wait_for_end(job) == 0, output(tmp_path, job)
    run = run_folder(tmp_path, job)
    assert_finished(run, 4, "srun")
    assert [(r["local_rank"], r["local_size"]) for r in ranks_of(run)] == [(0, 2), (1, 2)] * 2, "two ranks on each node"
    said = output(tmp_path, job)
    assert "eager.c2" in said and "4/4" in said and said.splitlines()[-1].endswith(f"job-{job}")
    assert_nothing_runs(tmp_path)


def test_a_dry_run_prints_the_script_that_would_be_submitted_and_leaves_nothing(tmp_path):
    done = on_the_cluster(tmp_path, PLATEAU, "submit", "job.json", "--dry-run", "--gpus-per-node", 2, "--hidden", 32,
                          "--", "--mem=0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH ") and "#SBATCH --mem=0\n" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["job.json"]
    checked = subprocess.run(["bash", "-n"], input=done.stdout, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr


def test_what_slurm_does_not_take_is_said_in_its_words_and_leaves_nothing(tmp_path):
    done = on_the_cluster(tmp_path, PLATEAU, "submit", "job.json", "--ntasks-per-node", 1, "--partition", "none")
    assert done.returncode == 2
    assert "sbatch did not take the job" in done.stderr and "invalid partition" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_bad_job_is_refused_before_it_waits_in_the_queue(tmp_path):
    done = on_the_cluster(tmp_path, PLATEAU, "submit", "job.json", "--ntasks-per-node", 1, "--modes", "arean")
    assert done.returncode == 2 and "did you mean arena" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_flags_and_the_job_as_it_was_submitted_count(tmp_path):
    job = submit(tmp_path, "--modes", "eager", "--", "--begin=now+1hour", nodes=1, ranks=1, name="later")
    write_job(tmp_path, modes=["arena"], name="changed")
    slurm("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert wait_for_end(job) == 0
    assert set(statuses(run_folder(tmp_path, job, "later"))) == {"eager.c1", "eager.c2"}


def test_the_site_file_is_part_of_the_script_and_the_command_line_overrides_it(tmp_path):
    site = tmp_path / "site file.sh"
    site.write_text("#SBATCH --comment=from-the-site\n#SBATCH --nodes=1\nexport SEEN_BY_THE_JOB=yes\n")
    write_job(tmp_path)
    script = slurm(PLATEAU, "submit", "job.json", "--nodes", 2, "--ntasks-per-node", 1, "--dry-run", cwd=tmp_path,
                   env=dict(cluster_environment(), PLATEAU_SITE=str(site)))
    path = tmp_path / "probe.sh"
    path.write_text(script[:script.index("\nplateau=")] + "\necho $SLURM_JOB_NUM_NODES $SEEN_BY_THE_JOB\n")
    (tmp_path / "runs").mkdir()
    job = slurm("sbatch", "--parsable", path, cwd=tmp_path)
    assert wait_for_end(job) == 0
    assert output(tmp_path, job) == "2 yes\n"


def test_srun_starts_ranks(tmp_path):
    done = on_the_cluster(tmp_path, "srun", "-N2", "--ntasks-per-node=2", PLATEAU, "run", "job.json", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert_finished(tmp_path / "run", 4, "external")
    assert "eager.c1" in done.stdout


def test_in_an_allocation_ranks_are_started_by_srun_as_many_as_it_has_tasks(tmp_path):
    done = on_the_cluster(tmp_path, "salloc", "-N2", "--ntasks-per-node=2", PLATEAU, "run", "job.json", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert_finished(tmp_path / "run", 4, "srun")


def test_an_allocation_that_names_no_tasks_has_a_rank_for_each_gpu(tmp_path):
    done = on_the_cluster(tmp_path, "salloc", "-N2", "--gpus-per-node=2", PLATEAU, "run", "job.json", "-o", "run",
                          device="cuda", fabric="off")
    assert done.returncode == 0, done.stderr
    assert_finished(tmp_path / "run", 4, "srun")
    assert [r["local_size"] for r in ranks_of(tmp_path / "run")] == [2] * 4


def test_mpirun_in_an_allocation_starts_ranks_on_all_its_nodes(tmp_path):
    done = on_the_cluster(tmp_path, "salloc", "-N2", "--ntasks-per-node=2", "mpirun", "-n", 4, PLATEAU, "run", "job.json",
                          "-o", "run")
    assert done.returncode == 0, done.stderr
    assert_finished(tmp_path / "run", 4, "external")


def test_tasks_that_cannot_find_each_other_are_told_how_to_launch(tmp_path):
    done = on_the_cluster(tmp_path, "srun", "--mpi=none", "-n2", PLATEAU, "run", "job.json", "-o", "run")
    assert done.returncode == 2
    assert "use srun --mpi=pmix" in done.stderr
    assert not (tmp_path / "run").exists()


def test_ranks_that_find_themselves_in_another_world_than_slurm_says_are_refused(tmp_path):
    done = on_the_cluster(tmp_path, "srun", "-n2", "env", "SLURM_STEP_NUM_TASKS=3", PLATEAU, "run", "job.json", "-o", "run")
    assert done.returncode != 0
    assert "asked for 3 ranks, but this one finds itself in a world of 2" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_single_task_without_pmix_starts_its_own_ranks(tmp_path):
    done = on_the_cluster(tmp_path, "srun", "--mpi=none", "-n1", PLATEAU, "run", "job.json", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert_finished(tmp_path / "run", 1, "srun")


@needs_a_terminal
@pytest.mark.parametrize("mpi", ["pmix", "none"])
def test_a_shell_in_a_step_starts_ranks_on_its_node(tmp_path, mpi):
    write_job(tmp_path)
    ours, theirs = pty.openpty()
    typed = f"cd {tmp_path} && {PLATEAU} run job.json -n 2 -o run"
    shell = subprocess.Popen(["srun", f"--mpi={mpi}", "-n1", "--pty", "bash", "-c", typed], env=cluster_environment(),
                             stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    said = read_all(ours)
    assert shell.wait(PATIENCE) == 0, said
    assert_finished(tmp_path / "run", 2, "mpirun")


def read_all(terminal):
    said = b""
    while True:
        try:
            said += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            os.close(terminal)
            return said.decode(errors="replace")


@pytest.mark.parametrize("launcher", [["srun", "-n1"], ["srun", "-n1", "--mpi=none"], ["mpirun", "-n", "1"]],
                         ids=["srun", "srun_without_pmix", "mpirun"])
def test_what_a_launcher_left_in_the_environment_does_not_reach_a_submitted_job(tmp_path, launcher):
    done = on_the_cluster(tmp_path, *launcher, PLATEAU, "submit", "job.json", "--nodes", 2, "--ntasks-per-node", 1)
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[1].rstrip(":")
    assert wait_for_end(job) == 0, output(tmp_path, job)
    assert_finished(run_folder(tmp_path, job), 2, "srun")


@pytest.mark.parametrize("launcher", [["srun", "-n1"], ["mpirun", "-n", "1"]], ids=["srun", "mpirun"])
def test_a_batch_script_of_the_users_own_does_not_mind_a_launchers_environment(tmp_path, launcher):
    script = tmp_path / "own.sh"
    script.write_text(f"#!/bin/bash\nexec {PLATEAU} run job.json -o run\n")
    done = on_the_cluster(tmp_path, *launcher, "sbatch", "--parsable", "-N2", "--ntasks-per-node=1", "-o", "own.out", script)
    assert done.returncode == 0, done.stderr
    job = done.stdout.strip()
    assert wait_for_end(job) == 0, (tmp_path / "own.out").read_text()
    assert_finished(tmp_path / "run", 2, "srun")


def test_nodes_without_a_common_folder_bring_their_results_to_rank_0(tmp_path):
    write_job(tmp_path)
    for node in ("n1", "n2"):
        (tmp_path / node).mkdir()
    # the same path, and a folder of its own on each node
    typed = f"cd {tmp_path}/$SLURMD_NODENAME && exec {PLATEAU} run {tmp_path}/job.json -o /proc/self/cwd/run"
    done = slurm("srun", "-N2", "--ntasks-per-node=2", "sh", "-c", typed, check=False)
    assert done.returncode == 0, done.stderr
    assert_finished(tmp_path / "n1" / "run", 4)
    assert sorted(p.name for p in (tmp_path / "n1" / "run" / "cases" / "eager.c1").iterdir()) == \
        [f"rank-0000{r}.cbor" for r in range(4)]
    assert not (tmp_path / "n2" / "run" / "summary.json").exists()
    assert sorted(p.name for p in (tmp_path / "n2" / "run" / "cases" / "eager.c1").iterdir()) == \
        ["rank-00002.cbor", "rank-00003.cbor"]
