# SPDX-License-Identifier: Apache-2.0
"""What the scenario tests share: running plateau, and looking at what it left."""
import contextlib
import json
import os
import pathlib
import pty
import signal
import subprocess
import time

import h5py
import pytest

BIN = pathlib.Path(os.environ["PLATEAU_BIN"])
TEST_BIN = pathlib.Path(os.environ["PLATEAU_TEST_BIN"])
PLATEAU = BIN / "plateau"
FAKE_WORKER = TEST_BIN / "fake_worker"

SMALL_JOB = {
    "device": "cpu", "dtype": "float32", "hidden": 16, "batch": 2, "seq_len": 4, "warmup": 2,
    "requests_per_worker": 20, "concurrency_levels": [1, 2], "modes": ["eager", "arena"],
    "soak": {"windows": 3, "requests_per_window": 10},
    "timeouts_s": {"compile": 20, "prepare": 5, "stall": 2, "collective": 10},
}
ALL = ["eager.c1", "eager.c2", "arena.c1", "arena.c2"]  # its cases, in order



def has_terminals():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError:
        return False
    return True


def has_mounts():
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/tmp"], capture_output=True).returncode == 0


needs_a_terminal = pytest.mark.skipif(not has_terminals() and not os.environ.get("REQUIRE_TERMINALS"),
                                      reason="no pseudo-terminals here: /dev/pts is not mounted, as in a bare container")
needs_mounts = pytest.mark.skipif(not has_mounts() and not os.environ.get("REQUIRE_MOUNTS"),
                                  reason="cannot mount a file system of its own: this is not root, or it is in a chroot")


def environment(script=(), worker=FAKE_WORKER, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "SLURM_"))}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PLATEAU_WORKER=str(worker),
               FAKE_WORKER_SCRIPT=json.dumps(list(script)), **more)
    return env


def write_job(folder, **fields):
    path = folder / "job.json"
    path.write_text(json.dumps({**SMALL_JOB, **fields}))
    return path


def plateau(*arguments, cwd, env=None, timeout=60):
    return subprocess.run([str(PLATEAU), *map(str, arguments)], cwd=cwd, env=env or environment(), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)


def run(folder, *arguments, script=(), timeout=60, **fields):
    """Runs a small job into folder/run; gives the finished process and the run's folder."""
    done = plateau("run", write_job(folder, **fields), "-o", folder / "run", *arguments, cwd=folder,
                   env=environment(script), timeout=timeout)
    return done, folder / "run"


def summary(run_folder):
    return json.loads((run_folder / "summary.json").read_text())


def results(run_folder):
    """The results of the measured cases, by case id."""
    return {r["case_id"]: r for r in summary(run_folder)["results"]}


@contextlib.contextmanager
def another_disk_at(folder):
    """A new folder in whose place a program that is started behind the words given sees a file system of its own, as on a
    node that does not share the folder. Gone with all that is on it at the end."""
    folder.mkdir()
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", f"mount -t tmpfs tmpfs {folder} && echo up && read line"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"up\n"
    try:
        yield ["nsenter", "-m", "-t", str(holder.pid), f"--wd={folder.parent}"]
    finally:
        holder.communicate(b"done\n", timeout=10)


def assert_attribution_adds_up(run_folder):
    """In run.h5 each case's operators add up to its counters, on every rank."""
    with h5py.File(run_folder / "run.h5") as file:
        for result in summary(run_folder)["results"]:
            group = file[result["case_id"]]["attribution"]
            for events in ("allocation_events", "free_events"):
                counted = group[f"counted_{events}"][:]
                parts = group[events][:].sum(axis=1) if events in group else 0 * counted
                assert (parts == counted).all(), result["case_id"]
                assert result["mode"].startswith("arena") or counted.min() > 0, result["case_id"]


def statuses(run_folder):
    return {case["case_id"]: case["status"] for case in summary(run_folder)["cases"]}


def processes_naming(text):
    """Living processes whose command line or environment holds the text."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if state != "Z" and text.encode() in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def command_line(pid):
    """The words of a process's command line, as bytes; one empty word when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {condition}")


def kill(pid, sig=signal.SIGKILL):
    os.kill(pid, sig)
