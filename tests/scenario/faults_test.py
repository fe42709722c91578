# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on one node, planted for real. In every row: no finished case is lost, what is missing is named, the
exit code is right, the message says what happened, no process and no temporary file is left."""
import dataclasses
import os
import pty
import signal
import subprocess
import time

import h5py
import pytest

from plateau_test import (FAKE_WORKER, PLATEAU, environment, kill, plateau, processes_naming, run, statuses, summary,
                          wait_until, write_job)

ALL = ["eager.c1", "eager.c2", "arena.c1", "arena.c2"]
SHORT = {"compile": 2, "prepare": 1, "stall": 1, "collective": 3}


def assert_nothing_is_left(tmp_path):
    """No process, and nothing half-written."""
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 10)
    left = [p.name for p in tmp_path.rglob("*") if ".partial" in p.name or p.name in (".nonce",)]
    assert left == []


def assert_results(folder, expected):
    """The summary and run.h5 say the same of every case; what is missing is named."""
    assert statuses(folder) == expected
    assert {m["case_id"] for m in summary(folder)["missing"]} == {c for c, s in expected.items() if s == "missing"}
    with h5py.File(folder / "run.h5") as file:
        assert file.attrs["complete"] == ("missing" not in expected.values())
        for case, status in expected.items():
            if status == "passed":
                assert (file[case]["latency_ns"][:] > 0).all(), case


# ------------------------------------------------------------------------------------------------- the worker goes wrong

@dataclasses.dataclass
class fault:
    """What a worker does wrong, and where; what becomes of the case; what is said."""
    do: str
    at: str
    status: str
    says: str


WORKER_FAULTS = [
    *(fault("exit", at, "crashed", "exited with code 3") for at in ("prepare", "warmup", "timed", "soak", "finishing")),
    *(fault("segv", at, "crashed", "killed by SIGSEGV") for at in ("prepare", "warmup", "timed", "soak", "finishing")),
    *(fault("kill", at, "crashed", "killed by SIGKILL") for at in ("prepare", "warmup", "timed", "soak", "finishing")),
    fault("hang", "prepare", "timed_out", "was not ready within 1 s"),
    fault("hang", "warmup", "timed_out", "finished no warm-up request within 1 s"),
    fault("hang", "timed", "timed_out", "finished no timed request within 1 s"),
    fault("hang", "soak", "timed_out", "finished no soak request within 1 s"),
    fault("hang", "finishing", "timed_out", "did not hand over its result within 1 s"),
    *(fault("garbage", at, "crashed", "not of the protocol") for at in ("prepare", "timed", "soak")),
    *(fault("half_frame", at, "crashed", "exited with code 0") for at in ("prepare", "timed")),
    fault("half_frame_then_silence", "prepare", "timed_out", "was not ready"),
    fault("half_frame_then_silence", "timed", "timed_out", "finished no timed request"),
    fault("trickle", "prepare", "timed_out", "was not ready"),
    fault("trickle", "finishing", "timed_out", "did not hand over its result"),
    *(fault("huge_frame", at, "crashed", "claims 2147483647 bytes") for at in ("prepare", "timed", "finishing")),
    *(fault("wrong_answer", at, "crashed", "with something else") for at in ("prepare", "timed")),
    *(fault("endless_points", at, "crashed", "with something else") for at in ("prepare", "soak")),
    fault("grandchild", "timed", "crashed", "killed by SIGSEGV"),
    fault("leave_a_child", "soak", "passed", ""),
    fault("flood", "timed", "passed", ""),
]


@pytest.mark.parametrize("fault", WORKER_FAULTS, ids=lambda f: f"{f.do}-{f.at}")
def test_a_worker_that_goes_wrong_costs_its_case_on_its_rank(tmp_path, fault):
    script = [{"rank": 1, "case": "eager.c2", "at": fault.at, "do": fault.do}]
    done, folder = run(tmp_path, "-n", "2", script=script, timeouts_s=SHORT)
    assert done.returncode == (0 if fault.status == "passed" else 3), done.stderr
    assert_results(folder, {case: fault.status if case == "eager.c2" else "passed" for case in ALL})
    assert fault.says in done.stderr
    assert fault.status == "passed" or "rank 1: " in done.stderr
    assert all(log.stat().st_size <= (8 << 20) + 200 for log in (folder / "logs").iterdir())
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("fault", [
    fault("exit", "hello", "crashed", "exited with code 3"),
    fault("segv", "hello", "crashed", "killed by SIGSEGV"),
    fault("hang", "hello", "timed_out", "did not come up within 1 s"),
    fault("trickle", "hello", "timed_out", "did not come up within 1 s"),
    fault("garbage", "hello", "crashed", "not of the protocol"),
    fault("wrong_answer", "hello", "crashed", "answered hello with something else"),
], ids=lambda f: f.do)
@pytest.mark.parametrize("ranks", [[1], [0, 1]], ids=["on_one_rank", "on_all_ranks"])
def test_workers_that_do_not_come_up_cost_every_case_of_their_ranks(tmp_path, fault, ranks):
    script = [{"rank": rank, "at": "hello", "do": fault.do} for rank in ranks]
    done, folder = run(tmp_path, "-n", "2", "--modes", "eager", script=script, timeouts_s=SHORT)
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {"eager.c1": fault.status, "eager.c2": fault.status}
    assert fault.says in done.stderr
    if ranks == [1]:
        with h5py.File(folder / "run.h5") as file:
            assert file["eager.c2"]["rank"][:].tolist() == [0], "what rank 0 measured is kept"
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("kind,says", [
    ("absent", "there is no worker at"), ("not_executable", "there is no worker at"), ("text", "cannot start the worker"),
    ("folder", "cannot start the worker")])
def test_a_worker_program_that_cannot_be_started_is_refused(tmp_path, kind, says):
    worker = tmp_path / "worker"
    if kind == "folder":
        worker.mkdir()
    elif kind != "absent":
        worker.write_text("no program")
        worker.chmod(0o755 if kind == "text" else 0o644)
    done = plateau("run", write_job(tmp_path), "-n", "2", "-o", "run", cwd=tmp_path, env=environment(worker=worker))
    assert done.returncode == 2, done.stderr
    assert says in done.stderr and str(worker) in done.stderr
    assert not (tmp_path / "run").exists()
    assert_nothing_is_left(tmp_path)


def test_a_rank_waits_for_another_as_long_as_that_one_makes_progress(tmp_path):
    script = [{"rank": 0, "case": "eager.c2", "at": "prepare", "do": "fail"},
              {"rank": 1, "case": "eager.c2", "at": "timed", "do": "slow", "seconds": 6}]
    done, folder = run(tmp_path, "-n", "3", script=script, timeouts_s={**SHORT, "collective": 1})
    assert done.returncode == 3, done.stderr
    assert_results(folder, {case: "failed" if case == "eager.c2" else "passed" for case in ALL})


# --------------------------------------------------------------------------------------------------- a rank is lost

def start(tmp_path, *arguments, script=(), env=None, **fields):
    """plateau run on two ranks, in the background; its folder."""
    fields.setdefault("timeouts_s", SHORT)
    running = subprocess.Popen([str(PLATEAU), "run", str(write_job(tmp_path, **fields)), "-n", "2", "-o", "run", *arguments],
                               cwd=tmp_path, text=True, env=env or environment(script), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return running, tmp_path / "run"


def command_line(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
    except OSError:
        return [b""]


def ranks_of(tmp_path):
    """The processes of rank 0, 1, ..., once all of them are there."""
    found = {}
    for pid in processes_naming(str(tmp_path)):
        words = command_line(pid)
        if words[0].endswith(b"plateau") and b"--as-rank" in words:
            entries = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
            found[int(dict(e.split(b"=", 1) for e in entries if b"=" in e)[b"OMPI_COMM_WORLD_RANK"])] = pid
    return found if len(found) == 2 else None


def workers_of(tmp_path):
    return [pid for pid in processes_naming(str(tmp_path)) if command_line(pid)[0] == str(FAKE_WORKER).encode()]


def has(folder, case, ranks=(0, 1)):
    return all((folder / "cases" / case / f"rank-0000{rank}.cbor").exists() for rank in ranks)


def slow(rank, at, **more):
    return {"rank": rank, "at": at, "do": "slow", "seconds": 30, **more}


@dataclasses.dataclass
class moment:
    """A step of a run at which a rank is struck: what slows the workers there, how it shows that it is reached, and which
    cases are finished by then."""
    name: str
    script: object  # given the victim
    reached: object  # given the folder and the victim
    kept: tuple = ()


MOMENTS = [
    moment("the workers start", lambda v: [slow(v, "hello")], lambda f, v: (f / "logs" / f"rank-0000{v}.log").exists()),
    moment("it prepares", lambda v: [slow(v, "prepare", case="eager.c2")], lambda f, v: has(f, "eager.c1"), ("eager.c1",)),
    moment("it waits for another that prepares", lambda v: [slow(1 - v, "prepare", case="eager.c2")],
           lambda f, v: has(f, "eager.c1"), ("eager.c1",)),
    moment("it measures", lambda v: [slow(v, "timed", case="eager.c2"), slow(1 - v, "timed", case="eager.c2")],
           lambda f, v: has(f, "eager.c1"), ("eager.c1",)),
    moment("its worker soaks", lambda v: [slow(v, "soak", case="arena.c1")], lambda f, v: has(f, "eager.c2"),
           ("eager.c1", "eager.c2")),
    moment("its result is stored and it waits for another", lambda v: [slow(1 - v, "timed", case="eager.c2")],
           lambda f, v: has(f, "eager.c2", [v]), ("eager.c1",)),
]


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("strike", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda m: m.name.replace(" ", "_"))
def test_a_rank_that_is_lost_loses_no_finished_case(tmp_path, moment, strike, victim):
    stopped = strike == signal.SIGSTOP
    slowed = [{**fault, "seconds": 5 if stopped else 30} for fault in moment.script(victim)]
    running, folder = start(tmp_path, script=slowed, timeouts_s={**SHORT, "prepare": 10})
    wait_until(lambda: moment.reached(folder, victim))
    ranks = wait_until(lambda: ranks_of(tmp_path))
    time.sleep(0.3)
    kill(ranks[victim], strike)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 75, err
    if moment.kept:
        expected = {case: "passed" if case in moment.kept else "missing" for case in ALL}
        struck = next(case for case in ALL if case not in moment.kept)
        if stopped:  # the others went on, and mpirun continues a stopped rank a moment before its end
            expected[struck] = next(status for status in ("passed", "missing") if statuses(folder)[struck] == status)
        assert_results(folder, expected)
        assert "run" == out.splitlines()[-1]
    else:
        assert "nothing was measured" in err and not folder.exists()
    if stopped:
        assert f"rank {victim} gave no sign of life for 3 s" in err
    else:
        assert "the ranks died" in err and "signal 9" in err
    assert_nothing_is_left(tmp_path)
