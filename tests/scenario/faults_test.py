# SPDX-License-Identifier: Apache-2.0
"""What can go wrong on one node, planted for real. In every row: no finished case is lost, what is missing is named, the
exit code is right, the message says what happened, no process and no temporary file is left."""
import dataclasses
import fcntl
import os
import pty
import shutil
import signal
import subprocess
import termios
import time

import h5py
import pytest

from plateau_test import (ALL, PLATEAU, another_disk_at, command_line, environment, kill, needs_a_terminal,
                          needs_mounts, plateau, processes_naming, run, statuses, summary, wait_until, write_job)

SHORT = {"compile": 2, "prepare": 1, "stall": 1, "collective": 3}


def assert_no_process(tmp_path):
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 10)


def assert_nothing_is_left(tmp_path):
    """No process, and nothing half-written."""
    assert_no_process(tmp_path)
    left = [p.name for p in tmp_path.rglob("*") if ".partial" in p.name or p.name == ".nonce"]
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
    fault("leave_a_daemon", "soak", "passed", ""),
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
              {"rank": 1, "case": "eager.c2", "at": "timed", "do": "slow", "seconds": 8}]
    done, folder = run(tmp_path, "-n", "3", script=script, timeouts_s=SHORT)
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


def ranks_of(tmp_path):
    """The processes of rank 0, 1, ..., once all of them are there."""
    found = {}
    for pid in processes_naming(str(tmp_path)):
        words = command_line(pid)
        if words[0].endswith(b"plateau") and b"--as-rank" in words:
            entries = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
            found[int(dict(e.split(b"=", 1) for e in entries if b"=" in e)[b"OMPI_COMM_WORLD_RANK"])] = pid
    return found if len(found) == 2 else None


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

# ------------------------------------------------------------------------------------------- the user, or the terminal

def say(pid, *signals, pause=0.25):
    for sig in signals:
        kill(pid, sig)
        wait_until(lambda: not is_pending(pid, sig))  # the kernel would merge the next one with it
        time.sleep(pause)


def is_pending(pid, sig):
    try:
        with open(f"/proc/{pid}/status") as file:
            masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd:", "ShdPnd:"))]
    except OSError:
        return False
    return any(mask >> (sig - 1) & 1 for mask in masks)


LONG = {**SHORT, "stall": 60, "prepare": 60}


def measures_for(tmp_path, seconds):
    """A script that makes tmp_path/measuring once the ranks have agreed to measure eager.c2, and takes its time there."""
    return [slow(0, "timed", case="eager.c2") | {"seconds": seconds, "mark": str(tmp_path / "measuring")}]


def measuring(tmp_path, *arguments, seconds=30):
    """A run that has finished eager.c1 and measures eager.c2 for a while."""
    running, folder = start(tmp_path, *arguments, script=measures_for(tmp_path, seconds), timeouts_s=LONG)
    wait_until((tmp_path / "measuring").exists)
    return running, folder


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_asked_once_to_stop_the_current_case_is_finished(tmp_path, name):
    running, folder = measuring(tmp_path, seconds=3)
    kill(running.pid, getattr(signal, name))
    out, err = running.communicate(timeout=30)
    assert running.returncode == 75, err
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "passed", "arena.c1": "missing", "arena.c2": "missing"})
    assert "stopping after this case; once more to stop now" in err and "stopped on request" in err
    assert_nothing_is_left(tmp_path)


def test_asked_once_to_stop_a_case_longer_than_the_grace_is_given_up(tmp_path):
    running, folder = measuring(tmp_path, "--grace", "1")
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 75, err
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "missing", "arena.c1": "missing", "arena.c2": "missing"})
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("pause", [0, 0.25], ids=["quickly", "slowly"])
@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGTERM] * 2, [signal.SIGINT] * 3,
                                     [signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGINT]],
                         ids=lambda signals: "-".join(s.name for s in signals))
def test_asked_more_often_the_run_stops_at_once(tmp_path, signals, pause):
    running, folder = measuring(tmp_path)
    say(running.pid, *signals, pause=pause)
    out, err = running.communicate(timeout=25)
    assert running.returncode == 75, err
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "missing", "arena.c1": "missing", "arena.c2": "missing"})
    assert "stopping now" in err and "stopped at once on request; keeping every finished case" in err
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("after", [0.02, 0.1, 0.2, 0.4])
def test_asked_to_stop_during_the_start_nothing_is_left(tmp_path, after, times):
    running, folder = start(tmp_path, script=[slow(0, "hello")], timeouts_s=LONG)
    time.sleep(after)
    say(running.pid, *[signal.SIGINT] * times)
    out, err = running.communicate(timeout=60)
    assert processes_naming(str(tmp_path)) == [], "the front end ends last"
    assert running.returncode in (75, -signal.SIGINT), err  # killed by it before anything was started
    if running.returncode == 75:
        assert "stop" in err and (not folder.exists() or "missing" in statuses(folder).values())
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("times", [1, 2])
def test_asked_to_stop_while_the_results_are_written_nothing_is_lost(tmp_path, times):
    running, folder = start(tmp_path, "--modes", "eager", "--requests-per-worker", "400000", timeouts_s=LONG)
    wait_until(lambda: list(folder.glob("run.h5.partial")), 60)
    say(running.pid, *[signal.SIGINT] * times)
    out, err = running.communicate(timeout=60)
    assert running.returncode in (0, 75), err
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "passed"})
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("strike", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_rank_that_is_lost_while_the_results_are_written_loses_none(tmp_path, strike, victim):
    running, folder = start(tmp_path, "--modes", "eager", "--requests-per-worker", "400000", timeouts_s=LONG)
    ranks = wait_until(lambda: ranks_of(tmp_path))
    wait_until(lambda: list(folder.glob("run.h5.partial")), 60)
    kill(ranks[victim], strike)
    out, err = running.communicate(timeout=60)
    assert running.returncode in (0, 75), err
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "passed"})
    assert_nothing_is_left(tmp_path)


def test_a_front_end_that_is_killed_takes_its_ranks_along_and_its_cases_are_kept(tmp_path):
    running, folder = measuring(tmp_path)
    kill(running.pid)
    running.communicate(timeout=10)
    assert_no_process(tmp_path)
    again = plateau("assemble", "run", cwd=tmp_path)
    assert again.returncode == 75, again.stderr
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "missing", "arena.c1": "missing", "arena.c2": "missing"})
    assert_nothing_is_left(tmp_path)


def test_a_launcher_that_is_killed_loses_no_finished_case(tmp_path):
    running, folder = measuring(tmp_path)
    kill(wait_until(lambda: [pid for pid in processes_naming(str(tmp_path)) if command_line(pid)[0] == b"mpirun"])[0])
    out, err = running.communicate(timeout=20)
    assert running.returncode == 75, err
    assert "the launcher was killed by signal 9" in err
    assert processes_naming(str(tmp_path)) == [], "the front end ends last"
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "missing", "arena.c1": "missing", "arena.c2": "missing"})
    assert_nothing_is_left(tmp_path)


@needs_a_terminal
def test_a_terminal_that_closes_stops_the_run_after_the_current_case(tmp_path):
    master, slave = pty.openpty()
    job = write_job(tmp_path, timeouts_s=LONG)
    running = subprocess.Popen([str(PLATEAU), "run", str(job), "-n", "2", "-o", "run"], cwd=tmp_path,
                               env=environment(measures_for(tmp_path, 3)), stdin=slave,
                               stdout=slave, stderr=slave, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(slave)
    folder = tmp_path / "run"
    wait_until((tmp_path / "measuring").exists)
    os.close(master)
    assert running.wait(timeout=30) == 75
    assert_results(folder, {"eager.c1": "passed", "eager.c2": "passed", "arena.c1": "missing", "arena.c2": "missing"})
    assert_nothing_is_left(tmp_path)


# ------------------------------------------------------------------------------------------------------ the surroundings

def shell(tmp_path, line, env=None, **fields):
    """The line in a shell; $RUN is a run of two ranks into the folder run."""
    words = f"{PLATEAU} run {write_job(tmp_path, timeouts_s=SHORT, **fields)} -n 2 -o {tmp_path}/run"
    return subprocess.run([shutil.which("bash"), "-c", line.replace("$RUN", words)], cwd=tmp_path, env=env or environment(), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


@pytest.mark.parametrize("line", [
    "$RUN >&-", "$RUN 2>&-", "$RUN <&-", "$RUN >&- 2>&- <&-", "set -o pipefail; $RUN | true",
    "set -o pipefail; $RUN 2>&1 | true", "$RUN >/dev/full", "unset HOME; $RUN", "cd /; $RUN", "nohup $RUN"])
def test_a_run_does_not_mind(tmp_path, line):
    done = shell(tmp_path, line)
    assert done.returncode == 0, done.stderr
    assert_results(tmp_path / "run", {case: "passed" for case in ALL})
    assert_nothing_is_left(tmp_path)


def test_a_current_folder_that_is_gone_is_said(tmp_path):
    done = shell(tmp_path, f"mkdir {tmp_path}/gone; cd {tmp_path}/gone; rmdir {tmp_path}/gone; $RUN")
    assert done.returncode == 2 and "the current folder cannot be used" in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["file", "full folder", "dangling link", "link to a folder that is full"])
def test_a_run_folder_that_exists_is_left_as_it_is(tmp_path, kind):
    target = tmp_path / "run"
    if kind == "file":
        target.write_text("dear")
    elif kind == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        full = target if kind == "full folder" else tmp_path / "full"
        full.mkdir()
        (full / "mine").write_text("dear")
        if full != target:
            target.symlink_to(full)
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    done = shell(tmp_path, "$RUN")
    assert done.returncode == 2 and "never overwrites" in done.stderr and "-o" in done.stderr, done.stderr
    assert sorted(str(p) for p in tmp_path.rglob("*") if p.name != "job.json") == before


def test_a_job_file_that_vanishes_before_the_ranks_read_it_is_named(tmp_path):
    launcher = tmp_path / "bin" / "mpirun"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\nrm {tmp_path}/job.json\nexec {shutil.which('mpirun')} \"$@\"\n")
    launcher.chmod(0o755)
    done = shell(tmp_path, "$RUN", environment() | {"PATH": f"{launcher.parent}:{os.environ['PATH']}"})
    assert done.returncode == 2 and "job.json: cannot be read: No such file" in done.stderr, done.stderr
    assert not (tmp_path / "run").exists()
    assert_nothing_is_left(tmp_path)


def test_a_launcher_that_is_absent_is_named(tmp_path):
    done = shell(tmp_path, "$RUN", environment() | {"PATH": "/nowhere"})
    assert done.returncode == 2 and "cannot start mpirun (No such file or directory); install Open MPI" in done.stderr


def on_a_disk_of(tmp_path, size, line, **fields):
    """The line in a mount namespace in which {tmp_path}/disk is a file system of that size; the folder run on it is copied to
    {tmp_path}/kept at the end."""
    (tmp_path / "disk").mkdir()
    job = write_job(tmp_path, timeouts_s=SHORT, **fields)
    command = f"{PLATEAU} run {job} -n 2 -o {tmp_path}/disk/run"
    script = (f"mount -t tmpfs -o size={size} tmpfs {tmp_path}/disk || exit 99\n{line.replace('$RUN', command)}\ncode=$?\n"
              f"cp -a {tmp_path}/disk {tmp_path}/kept; exit $code")
    return subprocess.run(["unshare", "-m", "bash", "-c", script.replace("$DISK", f"{tmp_path}/disk")], cwd=tmp_path,
                          env=environment(), text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def size_of(folder, *without):
    """What the files in a folder take on a tmpfs, in bytes: whole pages."""
    return sum(-(-p.stat().st_size // 4096) * 4096 for p in folder.rglob("*")
               if p.is_file() and not {p.name, p.parent.name} & set(without))


@needs_mounts
@pytest.mark.parametrize("too_big", ["a raw result", "run.h5", "summary.json"])
def test_a_disk_that_is_full_loses_no_finished_case(tmp_path, too_big):
    fields = {"requests_per_worker": 20000, "modes": ["eager"]}
    (tmp_path / "free").mkdir()
    free, folder = run(tmp_path / "free", "-n", "2", **fields)
    assert free.returncode == 0, free.stderr
    without = {"a raw result": ["run.h5", "summary.json", "eager.c2"], "run.h5": ["run.h5", "summary.json"],
               "summary.json": ["summary.json", "outcome.json"]}[too_big]
    size = size_of(folder, *without) + 2 * 4096
    done = on_a_disk_of(tmp_path, size, "$RUN", **fields)
    assert done.returncode == 75, done.stderr
    assert "No space left on device" in done.stderr and "plateau assemble" in done.stderr
    kept = tmp_path / "kept" / "run"
    assert has(kept, "eager.c1") and has(kept, "eager.c2") == (too_big != "a raw result")
    assert [p for p in kept.rglob("*") if ".partial" in p.name] == []
    assert_nothing_is_left(tmp_path)


@needs_mounts
def test_a_disk_that_had_no_room_for_the_results_gets_them_later(tmp_path):
    again = f"mount -o remount,size=64m $DISK; {PLATEAU} assemble $DISK/run"
    done = on_a_disk_of(tmp_path, "4m", f"$RUN; {again}", requests_per_worker=20000, modes=["eager"], repeats=2)
    assert done.returncode == 0, done.stderr
    assert_results(tmp_path / "kept" / "run", {f"eager.c{c}.r{r}": "passed" for c in (1, 2) for r in (1, 2)})


@needs_mounts
def test_a_disk_that_cannot_be_written_is_refused(tmp_path):
    done = on_a_disk_of(tmp_path, "1m", "mount -o remount,ro $DISK; $RUN")
    assert done.returncode == 2, done.stderr
    assert f"cannot make the run folder {tmp_path}/disk/run: Read-only file system" in done.stderr
    assert_nothing_is_left(tmp_path)


@needs_mounts
def test_no_room_for_the_launchers_own_files_is_said(tmp_path):
    done = on_a_disk_of(tmp_path, "4k", f"TMPDIR=$DISK {PLATEAU} run {tmp_path}/job.json -n 2 -o {tmp_path}/run")
    assert done.returncode in (0, 2), done.stderr
    if done.returncode == 2:
        assert "the launcher exited with code" in done.stderr and "nothing was measured" in done.stderr
    assert_nothing_is_left(tmp_path)


@needs_mounts
def test_ranks_of_a_host_that_does_not_see_rank_0s_folder_share_one_of_their_own(tmp_path):
    with another_disk_at(tmp_path / "own") as elsewhere:
        command = [str(PLATEAU), "run", str(write_job(tmp_path)), "-o", f"{tmp_path}/own/run"]
        done = subprocess.run(["mpirun", "--bind-to", "none", "--host", "localhost:3", "-n", "1", *command, ":", "-n", "2",
                               *elsewhere, *command], cwd=tmp_path, env=environment(), text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        there = subprocess.run([*elsewhere, "find", f"{tmp_path}/own/run", "-name", "rank-*.cbor", "-o", "-name", ".*"], text=True,
                               capture_output=True).stdout.split()
    assert done.returncode == 0, done.stderr
    assert_results(tmp_path / "own" / "run", {case: "passed" for case in ALL})
    assert len(list((tmp_path / "own" / "run" / "cases").rglob("rank-*.cbor"))) == 3 * len(ALL), "gathered over MPI"
    assert len(there) == 2 * len(ALL), there
    assert_nothing_is_left(tmp_path)


def test_a_rank_that_its_launcher_leaves_alone_in_its_world_is_refused(tmp_path):
    lonely = environment(OMPI_COMM_WORLD_SIZE="2", PMIX_SERVER_TMPDIR=str(tmp_path))
    done = plateau("run", write_job(tmp_path), "-o", "run", cwd=tmp_path, env=lonely)
    assert done.returncode == 2, done.stderr
    assert "asked for 2 ranks, but this one finds itself in a world of 1" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_folder_whose_path_is_not_utf8_is_refused(tmp_path):
    done = plateau("run", write_job(tmp_path), "-o", os.fsdecode(b"r\xff"), cwd=tmp_path)
    assert done.returncode == 2 and "must be UTF-8" in done.stderr, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["job.json"]
