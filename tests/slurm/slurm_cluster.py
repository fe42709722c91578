# SPDX-License-Identifier: Apache-2.0
"""What the tests on a Slurm cluster share: whether there is one, submitting to it, and looking at its jobs."""
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from plateau_test import (ALL, FAKE_WORKER, PLATEAU, command_line, environment, processes_naming, statuses, wait_until,
                          write_job)

CONF = os.environ["SLURM_CONF"]
ALL_PASSED = {case: "passed" for case in ALL}
PATIENCE = 120  # seconds for what takes one on an idle machine

needs_cluster = pytest.mark.skipif(not os.path.exists(CONF) and not os.environ.get("REQUIRE_SLURM"),
                                   reason="no Slurm cluster: slurmctld is not installed, or this is not root")


def cluster_environment(script=(), worker=FAKE_WORKER, **more):
    # the nodes share this machine, and shared memory is named after the host
    return environment(script, worker, SLURM_CONF=CONF, PLATEAU_SITE="", OMPI_MCA_btl="tcp,self", **more)


def slurm(*command, cwd="/", env=None, check=True, timeout=PATIENCE):
    """A command on the login node; its standard output, stripped."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env or cluster_environment(), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    assert not check or done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip() if check else done


def submit(folder, *arguments, script=(), worker=FAKE_WORKER, nodes=2, ranks=2, **fields):
    """Submits a small job from its file into folder/runs; the job's id."""
    said = slurm(PLATEAU, "submit", write_job(folder, **fields), "-o", "runs", "--nodes", nodes, "--ntasks-per-node",
                 ranks, *arguments, cwd=folder, env=cluster_environment(script, worker))
    return re.match(r"job (\d+):", said)[1]


def job_state(job):
    """What Slurm says of a job, as a dict: JobState, ExitCode, Restarts, ..."""
    said = slurm("scontrol", "show", "job", "-o", job).splitlines()[0]
    return dict(pair.split("=", 1) for pair in said.split() if "=" in pair)


def wait_for_end(job, seconds=PATIENCE):
    """The exit code of the batch script, once nothing of the job runs."""
    over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED")
    state = wait_until(lambda: (s := job_state(job))["JobState"] in over and s, seconds)
    return int(state["ExitCode"].split(":")[0])


def output(folder, job, name="job"):
    return (folder / "runs" / f"{name}-{job}.out").read_text()


def run_folder(folder, job, name="job"):
    return folder / "runs" / f"{name}-{job}"


def ranks_of(folder):
    return json.loads((folder / "run.json").read_text())["ranks"]


def wait_in_run(folder, condition):
    """As wait_until; a run that came to nothing shows at once what it said."""
    said = folder.with_name(folder.name + ".out")

    def holds():
        text = said.read_text() if said.exists() else ""
        assert "nothing was measured" not in text, text
        return condition()
    wait_until(holds, PATIENCE)


def wait_for_case(folder, case, ranks=4):
    """Until the ranks have durable results of the case."""
    wait_in_run(folder, lambda: all((folder / "cases" / case / f"rank-{r:05}.cbor").exists() for r in range(ranks)))


def tasks_on(node, text):
    """The processes of Slurm's tasks on a node that name the text."""
    found = []
    for pid in processes_naming(text):
        try:
            if f"SLURMD_NODENAME={node}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def rank_processes(folder):
    """The ranks' processes, in no order."""
    return [pid for pid in processes_naming(str(folder)) if b"--as-rank" in command_line(pid) and command_line(pid)[0].endswith(b"plateau")]


def assert_nothing_runs(folder):
    wait_until(lambda: processes_naming(str(folder)) == [], PATIENCE)


def assert_kept(folder, finished, case_in_hand=("missing",)):
    """The finished cases are there, the others are named as missing, nothing is half-written. The first of the others may
    have another status of `case_in_hand`."""
    found = statuses(folder)
    others = [case for case in ALL if case not in finished]
    assert all(found[case] == "passed" for case in finished), found
    assert found[others[0]] in case_in_hand, found
    assert all(found[case] == "missing" for case in others[1:]), found
    assert [p for p in folder.rglob("*") if ".partial" in p.name] == []


def signal_of_the_time_limit(job):
    """What --signal=B:USR1 sends before the time is up."""
    slurm("scancel", "--batch", "--signal=USR1", job)


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
