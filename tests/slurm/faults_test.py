# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on a cluster, done for real in the middle of a case. In every row: no finished case is lost, what is
missing is named, the exit code is right, nothing is left running on any node."""
import os
import re

import pytest

from plateau_test import command_line, kill, plateau, processes_naming, wait_until
from slurm_cluster import (PATIENCE, assert_kept, assert_nothing_runs, job_state, kill_all, needs_cluster, output,
                           rank_processes, run_folder, signal_of_the_time_limit, slurm, submit, tasks_on,
                           wait_for_case, wait_for_end, wait_in_run)

pytestmark = needs_cluster

FINISHED = ["eager.c1", "eager.c2"]
# The last rank's worker does not end its case; the other ranks wait for it.
STUCK = [{"rank": 3, "case": "arena.c1", "at": "timed", "do": "hang"}]
PATIENT = {"compile": 20, "prepare": 60, "stall": 600, "collective": 10}


@pytest.fixture
def stuck(tmp_path):
    """A job on 2 nodes x 2 ranks whose third case does not end; the first two are finished."""
    job = submit(tmp_path, script=STUCK, timeouts_s=PATIENT)
    wait_for_case(run_folder(tmp_path, job), "eager.c2")
    wait_for_case(run_folder(tmp_path, job), "arena.c1", ranks=3)
    yield job
    slurm("scancel", job, check=False)
    wait_for_end(job)


def workers(folder):
    ranks = set(rank_processes(folder))
    return [pid for pid in (int(p) for p in os.listdir("/proc") if p.isdigit()) if parent(pid) in ranks and b"worker" in command_line(pid)[0]]


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def assert_stopped(folder, job, case_in_hand=("missing",)):
    assert wait_for_end(job) == 75, output(folder, job)
    assert_kept(run_folder(folder, job), FINISHED, case_in_hand)
    assert_nothing_runs(folder)


# Slurm kills rank and worker one after the other: if it takes its time, the rank sees a worker that was killed.
KILLED = ("missing", "crashed")


@pytest.mark.parametrize("victim", [0, -1], ids=["of_rank_0", "of_the_last_rank"])
def test_a_killed_rank_loses_no_finished_case(tmp_path, stuck, victim):
    def rank_of(pid):
        with open(f"/proc/{pid}/environ") as file:
            return int(dict(e.split("=", 1) for e in file.read().split("\0") if "=" in e)["SLURM_PROCID"])
    kill(sorted(rank_processes(tmp_path), key=rank_of)[victim])
    assert_stopped(tmp_path, stuck, KILLED)
    assert "the ranks died" in output(tmp_path, stuck)


def test_a_killed_srun_loses_no_finished_case(tmp_path, stuck):
    sruns = [pid for pid in processes_naming(str(tmp_path)) if command_line(pid)[0] == b"srun"]
    # its child is there to end the step when it dies; a list, as the child's parent is another one then
    kill_all([pid for pid in sruns if parent(pid) not in sruns])
    assert_stopped(tmp_path, stuck, KILLED)


def test_a_cancelled_step_loses_no_finished_case(tmp_path, stuck):
    slurm("scancel", f"{stuck}.0")  # kills the ranks without a warning
    assert_stopped(tmp_path, stuck, KILLED)


def test_a_cancelled_job_loses_no_finished_case(tmp_path, stuck):
    slurm("scancel", stuck)
    wait_for_end(stuck)
    assert_nothing_runs(tmp_path)
    run = run_folder(tmp_path, stuck)
    again = plateau("assemble", run, cwd=tmp_path)  # Slurm gives it seconds; whether those were enough does not matter
    assert again.returncode == 75, again.stderr
    assert_kept(run, FINISHED, KILLED)


def test_a_signal_to_all_of_a_job_stops_it_after_the_grace(tmp_path):
    job = submit(tmp_path, "--grace", "0", script=STUCK, timeouts_s=PATIENT)
    wait_for_case(run_folder(tmp_path, job), "eager.c2")
    slurm("scancel", "--signal=USR1", job)  # as a preemption sends it
    assert_stopped(tmp_path, job)
    assert "stopped on request" in output(tmp_path, job)
    assert job_state(job)["Restarts"] == "0"


def test_a_job_that_is_told_to_stop_is_not_requeued(tmp_path):
    job = submit(tmp_path, "--grace", "0", script=STUCK, timeouts_s=PATIENT)
    wait_for_case(run_folder(tmp_path, job), "eager.c2")
    slurm("scancel", "--batch", "--signal=TERM", job)
    assert_stopped(tmp_path, job)
    assert job_state(job)["Restarts"] == "0"


def test_a_job_whose_time_is_up_before_it_finished_anything_is_not_requeued(tmp_path):
    first = [{"case": "eager.c1", "at": "timed", "do": "hang"}]
    job = submit(tmp_path, "--grace", "0", script=first, timeouts_s=PATIENT)
    folder = run_folder(tmp_path, job)
    wait_in_run(folder, lambda: len(workers(tmp_path)) == 4 and (folder / "run.json").exists())
    signal_of_the_time_limit(job)
    assert wait_for_end(job) == 75
    assert "no case was finished in it: not requeued" in output(tmp_path, job)
    assert job_state(job)["Restarts"] == "0"
    assert_kept(run_folder(tmp_path, job), [])
    assert_nothing_runs(tmp_path)


def test_a_lost_node_loses_no_finished_case(tmp_path, stuck):
    lose_node("n2", tmp_path)
    try:
        wait_until(lambda: output(tmp_path, stuck).endswith(f"job-{stuck}\n"), PATIENCE)
        assert re.search("rank [23].* gave no sign of life", output(tmp_path, stuck))
        assert "rank 3: no result" in output(tmp_path, stuck)
        assert_kept(run_folder(tmp_path, stuck), FINISHED)
    finally:
        slurm("scancel", stuck, check=False)
        bring_back("n2")
    assert_stopped(tmp_path, stuck)


def lose_node(node, folder):
    """Kills all that Slurm has running on a node: its daemon, the daemons of its steps, their tasks and workers."""
    tasks = tasks_on(node, str(folder))
    steps = {parent(pid) for pid in tasks if command_line(parent(pid))[0].startswith(b"slurmstepd")}
    assert steps
    daemon = int(open(os.path.join(os.path.dirname(os.environ["SLURM_CONF"]), f"slurmd.{node}.pid")).read())
    children = [pid for pid in workers(folder) if parent(pid) in tasks]
    kill_all([daemon, *steps, *tasks, *children])


def bring_back(node):
    link = os.path.dirname(os.environ["SLURM_CONF"])
    slurm(os.path.join(os.path.dirname(__file__), "cluster.sh"), "node", link, node)
    slurm("scontrol", "update", f"nodename={node}", "state=resume", check=False)
    wait_until(lambda: slurm("sinfo", "-h", "-N", "-n", node, "-t", "idle", "-o", "%N").split()[:1] == [node], PATIENCE)
