# SPDX-License-Identifier: Apache-2.0
"""plateau run --resume: a run that was broken off goes on, and comes to what it would have come to unbroken. What is there
is kept as it is; what is missing on any rank is run again on all of them, and two attempts at a case are never mixed."""
import json
import os
import shlex
import signal
import subprocess

import h5py
import pytest

from plateau_test import (ALL, PLATEAU, another_disk_at, command_line, environment, kill, needs_mounts, plateau,
                          processes_naming, run, statuses, summary, wait_until, write_job)

PATIENT = {"compile": 60, "prepare": 60, "stall": 60, "collective": 10}
FIRST, SECOND = 1, 2


def start(folder, *arguments, script=(), **fields):
    """A run of two ranks into folder/run, or a resume of it, going on by itself."""
    what = arguments if "--resume" in arguments else (write_job(folder, timeouts_s=PATIENT, **fields), "-o", "run", "-n",
                                                      "2", *arguments)
    running = subprocess.Popen([str(PLATEAU), "run", *map(str, what)], cwd=folder, env=environment(script), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return running, folder / "run"


def resume(folder, *arguments, script=(), env=None):
    return plateau("run", "--resume", "run", *arguments, cwd=folder, env=env or environment(script))


def raw(folder, case, rank, attempt=FIRST):
    return folder / "cases" / case / (f"rank-{rank:05}.cbor" if attempt == FIRST else f"rank-{rank:05}.attempt-{attempt}.cbor")


def has(folder, *cases, attempt=FIRST):
    return all(raw(folder, case, rank, attempt).exists() for case in cases for rank in (0, 1))


def attempts(folder):
    """For each case, the attempts that its ranks' results are of; a rank without a result has none."""
    return {case["case_id"]: {rank["attempt"] for rank in case["ranks"] if "attempt" in rank}
            for case in summary(folder)["cases"]}


def ranks_of(folder):
    return sorted(pid for pid in processes_naming(str(folder)) if b"--as-rank" in command_line(pid)
                  and command_line(pid)[0].endswith(b"plateau"))


def launcher_of(folder):
    return next(pid for pid in processes_naming(str(folder)) if command_line(pid)[0] == b"mpirun")


def content(folder):
    """Every file of the run and what is in it, but for who has it locked."""
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "run.lock"}


BREAKS = {
    "interrupted": lambda running, folder: kill(running.pid, signal.SIGINT),
    "front_end_killed": lambda running, folder: kill(running.pid),
    "launcher_killed": lambda running, folder: kill(launcher_of(folder)),
    "rank_0_killed": lambda running, folder: kill(ranks_of(folder)[0]),
    "rank_1_killed": lambda running, folder: kill(ranks_of(folder)[1]),
}


def break_off(tmp_path, how="interrupted", case="arena.c1", at="timed", rank=None, until=("eager.c1", "eager.c2"), **fields):
    """A run that hangs in a case, and is broken off there."""
    hang = {"case": case, "at": at, "do": "hang"} | ({} if rank is None else {"rank": rank})
    running, folder = start(tmp_path, "--grace", "0", script=[hang], **fields)
    wait_until(lambda: (folder / "run.json").exists() and has(folder, *until) and len(ranks_of(tmp_path)) == 2)
    if rank is not None and at == "finishing":
        wait_until(lambda: raw(folder, case, 1 - rank).exists())
    BREAKS[how](running, tmp_path)
    out, err = running.communicate(timeout=60)
    assert running.returncode == (-signal.SIGKILL if how == "front_end_killed" else 75), err
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 30)
    return folder, out, err


def comparable(found):
    """A summary without what no two runs share: names, times and attempts."""
    if isinstance(found, dict):
        own = {"run", "started", "seconds", "attempt", "checksum", "name", "gate_ns", "attempts"}
        return {key: comparable(value) for key, value in found.items() if key not in own}
    return [comparable(each) for each in found] if isinstance(found, list) else found


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("at,rank", [("prepare", None), ("timed", None), ("finishing", 0), ("finishing", 1)])
def test_a_run_that_was_broken_off_goes_on_and_comes_to_the_same(tmp_path, how, at, rank):
    folder, _, _ = break_off(tmp_path, how, at=at, rank=rank)
    kept = {raw(folder, case, r): raw(folder, case, r).stat() for case in ALL[:2] for r in (0, 1)}

    done = resume(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 of 4 cases are there" in done.stderr and "4/4 arena.c2" in done.stderr and "1/4" not in done.stderr
    assert statuses(folder) == {case: "passed" for case in ALL}
    assert attempts(folder) == {"eager.c1": {FIRST}, "eager.c2": {FIRST}, "arena.c1": {SECOND}, "arena.c2": {SECOND}}
    for path, before in kept.items():
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "it was not run twice"
    assert not raw(folder, "arena.c1", 0).exists(), "what the second attempt replaced is gone"

    (tmp_path / "unbroken").mkdir()
    unbroken, other = run(tmp_path / "unbroken", "-n", "2", timeouts_s=PATIENT)
    assert unbroken.returncode == 0, unbroken.stderr
    assert comparable(summary(folder)) == comparable(summary(other))
    with h5py.File(folder / "run.h5") as file:
        assert file.attrs["complete"] == 1
    assert plateau("validate", "run", cwd=tmp_path).returncode == 0
    assert not list(folder.rglob(".*")) and not list(folder.rglob("*.partial"))


def test_each_attempt_is_written_down_with_its_time_its_launcher_and_where_its_ranks_were(tmp_path):
    folder, _, _ = break_off(tmp_path)
    assert resume(tmp_path).returncode == 0
    first, second = json.loads((folder / "run.json").read_text())["attempts"]
    assert (first["attempt"], second["attempt"]) == (FIRST, SECOND) and first["started"] <= second["started"]
    assert "-o" in first["command_line"] and "--resume" in second["command_line"]
    for attempt in (first, second):
        assert attempt["launcher"] == "mpirun" and attempt["versions"]["plateau"]
        assert [(p["host"], p["device"]) for p in attempt["places"]] == [(os.uname().nodename, "fake device")] * 2
    assert summary(folder)["run"]["attempts"] == [first, second]


def test_a_run_that_is_not_complete_says_last_how_to_go_on_and_that_works(tmp_path):
    folder, out, _ = break_off(tmp_path)
    *_, hint, path = out.splitlines()
    assert path == "run" and hint == "to go on: plateau run --resume run"
    words = shlex.split(hint.removeprefix("to go on: plateau "))
    assert plateau(*words, cwd=tmp_path).returncode == 0
    assert statuses(folder) == {case: "passed" for case in ALL}


def test_ranks_that_the_user_starts_go_on_as_well(tmp_path):
    folder, _, _ = break_off(tmp_path)
    again = ["mpirun", "-n", "2", "--bind-to", "none", str(PLATEAU), "run", "--resume", "run"]
    done = subprocess.run(again, cwd=tmp_path, env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert attempts(folder)["eager.c2"] == {FIRST} and attempts(folder)["arena.c1"] == {SECOND}
    done = subprocess.run(again, cwd=tmp_path, env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0 and "nothing is left to run" in done.stderr
    assert attempts(folder)["arena.c1"] == {SECOND}


def test_a_resume_that_is_killed_mixes_no_attempts_and_loses_nothing(tmp_path):
    folder, _, _ = break_off(tmp_path, case="eager.c2", at="finishing", rank=1, until=("eager.c1",))
    assert raw(folder, "eager.c2", 0).exists() and not raw(folder, "eager.c2", 1).exists()

    running, _ = start(tmp_path, "--resume", "run", script=[{"case": "eager.c2", "rank": 0, "at": "finishing", "do": "hang"}])
    wait_until(lambda: raw(folder, "eager.c2", 1, SECOND).exists())
    assert not {"outcome.json", "summary.json", "run.h5"} & {p.name for p in folder.iterdir()}, "nothing claims to be done"
    kill(running.pid)
    running.communicate(timeout=30)
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 30)
    assert raw(folder, "eager.c2", 0).exists(), "the first attempt is kept until the second is whole"

    assert plateau("assemble", "run", cwd=tmp_path).returncode == 75
    assert statuses(folder) == {"eager.c1": "passed"} | {case: "missing" for case in ALL[1:]}
    assert len(attempts(folder)["eager.c2"]) == 1, "results of two attempts are not one case"

    assert resume(tmp_path).returncode == 0
    assert attempts(folder) == {"eager.c1": {FIRST}} | {case: {3} for case in ALL[1:]}
    assert sorted(p.name for p in (folder / "cases" / "eager.c2").iterdir()) == ["rank-00000.attempt-3.cbor",
                                                                                "rank-00001.attempt-3.cbor"]


@pytest.mark.parametrize("damage", [lambda p: p.write_bytes(p.read_bytes()[:-20]), lambda p: p.unlink(),
                                    lambda p: p.write_bytes(b"")], ids=["truncated", "gone", "empty"])
def test_a_result_that_is_damaged_is_measured_again_on_all_ranks(tmp_path, damage):
    done, folder = run(tmp_path, "-n", "2")
    assert done.returncode == 0, done.stderr
    damage(raw(folder, "eager.c2", 1))
    done = resume(tmp_path)
    assert done.returncode == 0, done.stderr
    assert attempts(folder) == {case: {SECOND if case == "eager.c2" else FIRST} for case in ALL}
    assert plateau("validate", "run", cwd=tmp_path).returncode == 0


def test_a_damaged_result_is_kept_apart_until_the_case_is_there_again(tmp_path):
    done, folder = run(tmp_path, "-n", "2", timeouts_s=PATIENT)
    raw(folder, "eager.c2", 1).write_bytes(b"damaged")
    running, _ = start(tmp_path, "--resume", "run", script=[{"case": "eager.c2", "rank": 0, "at": "finishing", "do": "hang"}])
    wait_until(lambda: raw(folder, "eager.c2", 1, SECOND).exists())
    kill(ranks_of(tmp_path)[1])
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    ranks = next(c for c in summary(folder)["cases"] if c["case_id"] == "eager.c2")["ranks"]
    assert [r["status"] for r in ranks] == ["passed", "missing"]
    assert "to go on" in out


FINAL = {"segv": "crashed", "fail": "failed", "oom": "out_of_memory", "skip": "skipped"}


@pytest.mark.parametrize("fault", FINAL)
def test_a_case_that_did_not_pass_has_its_result_and_is_not_run_again_unless_asked(tmp_path, fault):
    done, folder = run(tmp_path, "-n", "2", script=[{"case": "eager.c1", "rank": 1, "at": "prepare", "do": fault}])
    code = done.returncode
    assert code == (0 if fault == "skip" else 3)
    assert resume(tmp_path).returncode == code and attempts(folder)["eager.c1"] == {FIRST}
    assert statuses(folder)["eager.c1"] == FINAL[fault]
    done = resume(tmp_path, "--retry-failed")
    assert done.returncode == 0, done.stderr
    assert statuses(folder)["eager.c1"] == "passed"
    assert attempts(folder) == {case: {SECOND if case == "eager.c1" else FIRST} for case in ALL}


@pytest.mark.parametrize("retried", [False, True], ids=["new", "retried"])
def test_a_run_that_is_stopped_in_its_last_case_says_so_and_is_not_done(tmp_path, retried):
    stuck = [{"case": "arena.c2", "rank": 1, "at": "finishing", "do": "hang"}]
    attempt = SECOND if retried else FIRST
    if retried:
        done, _ = run(tmp_path, "-n", "2", timeouts_s=PATIENT, script=[{"case": "arena.c2", "at": "prepare", "do": "skip"}])
        assert done.returncode == 0, done.stderr
    running, folder = start(tmp_path, *(["--resume", "run", "--retry-failed"] if retried else []), "--grace", "0", script=stuck)
    wait_until(lambda: raw(folder, "arena.c2", 0, attempt).exists())
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75 and "stopped on request" in err, err
    end = {"exit_code": 75, "reason": "stopped on request"}
    assert json.loads((folder / "outcome.json").read_text()).items() >= end.items()
    assert statuses(folder)["arena.c2"] == ("skipped" if retried else "missing")
    done = resume(tmp_path, *(["--retry-failed"] if retried else []))
    assert done.returncode == 0, done.stderr
    assert statuses(folder)["arena.c2"] == "passed" and attempts(folder)["arena.c2"] == {attempt + 1}


def test_a_complete_run_says_so_exits_with_its_code_and_starts_nothing(tmp_path):
    done, folder = run(tmp_path, "-n", "2", script=[{"case": "eager.c1", "at": "timed", "do": "segv"}])
    assert done.returncode == 3
    before = content(folder)
    done = resume(tmp_path, env=environment() | {"PATH": "/nowhere"})  # without a launcher
    assert done.returncode == 3, done.stderr
    assert "every case is there; nothing is left to run" in done.stderr and done.stdout.splitlines()[-1] == "run"
    assert content(folder) == before


def test_results_that_a_killed_run_could_not_make_are_made_without_measuring_again(tmp_path):
    done, folder = run(tmp_path, "-n", "2")
    for name in ("outcome.json", "summary.json", "run.h5"):
        (folder / name).unlink()
    done = resume(tmp_path, env=environment() | {"PATH": "/nowhere"})
    assert done.returncode == 0, done.stderr
    assert statuses(folder) == {case: "passed" for case in ALL} and attempts(folder)["eager.c1"] == {FIRST}
    assert json.loads((folder / "outcome.json").read_text())["exit_code"] == 0


def test_dry_run_lists_what_would_be_run_and_changes_nothing(tmp_path):
    folder, _, _ = break_off(tmp_path)
    before = content(folder)
    done = resume(tmp_path, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["arena.c1", "arena.c2", "2 cases on 2 ranks; 120 timed requests, about 1 MB of samples"]
    assert content(folder) == before


def test_the_same_job_may_be_given_again_in_any_of_its_forms(tmp_path):
    folder, _, _ = break_off(tmp_path)
    job = json.loads((tmp_path / "job.json").read_text())
    renamed = tmp_path / "renamed.json"
    renamed.write_text(json.dumps({key: value for key, value in job.items() if key not in ("device", "dtype")}))
    for again in (tmp_path / "job.json", folder / "job.json", folder / "summary.json", renamed):
        assert resume(tmp_path, again, "--hidden", "16", "-n", "2", "--dry-run").returncode == 0
    assert resume(tmp_path, renamed).returncode == 0


def test_another_job_is_refused_with_all_that_differs(tmp_path):
    folder, _, _ = break_off(tmp_path)
    before = content(folder)
    for arguments in (["--hidden", "512", "--soak", "windows=5", "--modes", "eager"],
                      [write_job(tmp_path, hidden=512, modes=["eager"], soak={"windows": 5, "requests_per_window": 10},
                                 timeouts_s=PATIENT)]):
        done = resume(tmp_path, *arguments)
        assert done.returncode == 2, done.stderr
        assert done.stderr.splitlines()[1:] == ['/hidden: 16 in the run, 512 now',
                                                '/modes: ["eager","arena"] in the run, ["eager"] now',
                                                '/soak/windows: 3 in the run, 5 now']
    assert content(folder) == before


def by_mpirun(folder, ranks):
    return subprocess.run(["mpirun", "--oversubscribe", "-n", str(ranks), str(PLATEAU), "run", "--resume", "run"], cwd=folder,
                          env=environment(), text=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("again", [lambda folder: resume(folder, "-n", "3"), lambda folder: by_mpirun(folder, 3)],
                         ids=["front_end", "mpirun"])
def test_another_number_of_ranks_is_refused(tmp_path, again):
    folder, _, _ = break_off(tmp_path)
    before = content(folder)
    done = again(tmp_path)
    assert done.returncode == 2 and "has 2 ranks, and 3 are there now" in done.stderr, done.stderr
    assert content(folder) == before


@pytest.mark.parametrize("arguments,says", [
    (["--resume", "nowhere"], "does not exist"),
    (["--resume", "empty"], "no run.json"),
    (["--resume", "run", "-o", "other"], "exclude each other"),
    (["--allow-moved", "job.json"], "--resume"),
    ([], "which job?"),
])
def test_what_cannot_be_resumed_is_refused_with_a_sentence(tmp_path, arguments, says):
    write_job(tmp_path)
    (tmp_path / "empty").mkdir()
    done = plateau("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_a_run_that_goes_on_cannot_be_resumed_beside_itself(tmp_path):
    running, folder = start(tmp_path, script=[{"case": "eager.c2", "at": "timed", "do": "hang"}])
    wait_until(lambda: has(folder, "eager.c1"))
    for again in (resume(tmp_path), by_mpirun(tmp_path, 2), plateau("assemble", "run", cwd=tmp_path),
                  plateau("merge", "run", "-o", "merged", cwd=tmp_path)):
        assert again.returncode == 2, again.stderr
        assert f"is being run by process {ranks_of(tmp_path)[0]} on {os.uname().nodename}" in again.stderr
    assert not (folder / "summary.json").exists() and not (tmp_path / "merged").exists()
    kill(running.pid)
    running.communicate(timeout=30)
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 30)
    assert resume(tmp_path).returncode == 0, "the kernel took the lock away"
    assert statuses(folder) == {case: "passed" for case in ALL}


def assert_as_it_was(folder, before):
    """But for the logs, which tell of the attempt."""
    now = content(folder)
    assert now.keys() == before.keys()
    assert [path for path in now if path.suffix != ".log" and now[path] != before[path]] == []


def test_a_resume_on_gpus_that_cannot_work_together_is_refused_and_leaves_the_run_as_it_was(tmp_path):
    folder, _, _ = break_off(tmp_path, device="cuda")
    before = content(folder)
    done = resume(tmp_path, script=[{"do": "fabric", "rank": 1, "step": "initialising", "reason": "planted"}])
    assert done.returncode == 2 and "planted" in done.stderr and "NCCL_DEBUG=INFO" in done.stderr, done.stderr
    assert "--fabric" not in done.stderr and "--env" not in done.stderr, "with either it would be another job"
    assert_as_it_was(folder, before)
    assert resume(tmp_path).returncode == 0
    assert statuses(folder) == {case: "passed" for case in ALL}


def rehearsing(tmp_path, *launcher):
    """A rehearsal that hangs in arena.c1, on workers that say that their GPU is pretended."""
    (tmp_path / "libpretend_cuda.so").touch()
    job = write_job(tmp_path, timeouts_s=PATIENT, device="cuda", fabric="off")
    env = environment([{"do": "device", "pretended": True}, {"case": "arena.c1", "at": "timed", "do": "hang"}],
                      PLATEAU_PRETEND_GPU=str(tmp_path))
    running = subprocess.Popen([*launcher, str(PLATEAU), "rehearse", str(job), "--gpu", "h200", "-o", "run", "--grace", "0"],
                               cwd=tmp_path, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    wait_until(lambda: raw(tmp_path / "run", "eager.c2", 0).exists())
    return running


def test_a_rehearsal_that_was_broken_off_names_no_command_that_would_be_refused(tmp_path):
    running = rehearsing(tmp_path)
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75 and "stopped on request" in err, err
    assert "--resume" not in out + err and "next: plateau show run --explain" in out
    refused = resume(tmp_path)
    assert refused.returncode == 2 and "is a rehearsal and cannot be resumed" in refused.stderr


def test_a_rehearsal_by_a_launcher_that_is_told_to_end_names_no_such_command_either(tmp_path):
    running = rehearsing(tmp_path, "mpirun", "-n", "1")
    kill(running.pid, signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert "--resume" not in out + err and "a rehearsal cannot be resumed; rehearse again" in err, err


ELSEWHERE = [{"do": "device", "rank": 1, "name": "fake device", "uuid": "GPU-7"}]


def test_a_rank_whose_gpu_is_another_one_is_refused_with_both_named(tmp_path):
    folder, _, _ = break_off(tmp_path, device="cuda", fabric="off")
    before = content(folder)
    done = resume(tmp_path, script=ELSEWHERE)
    host = os.uname().nodename
    assert done.returncode == 2, done.stderr
    assert f"rank 1: fake device GPU-1 on {host} in attempt 1, fake device GPU-7 on {host} now" in done.stderr
    assert "rank 0:" not in done.stderr and "--allow-moved" in done.stderr
    assert_as_it_was(folder, before)


def test_cases_of_two_gpus_are_marked_as_not_comparable_when_that_is_allowed(tmp_path):
    folder, _, _ = break_off(tmp_path, device="cuda", fabric="off")
    done = resume(tmp_path, "--allow-moved", script=ELSEWHERE)
    assert done.returncode == 0, done.stderr
    moved, = summary(folder)["run"]["moved"]
    assert (moved["attempt"], moved["cases"]) == (FIRST, ["eager.c1", "eager.c2"])
    assert (moved["other"], moved["others"]) == (SECOND, ["arena.c1", "arena.c2"])
    assert "GPU-1" in moved["what"] and "GPU-7" in moved["what"]
    assert ": eager.c1, eager.c2 (attempt 1) with arena.c1, arena.c2 (attempt 2)" in done.stdout
    places = {a["attempt"]: [p["uuid"] for p in a["places"]] for a in summary(folder)["run"]["attempts"]}
    assert places == {FIRST: ["GPU-0", "GPU-1"], SECOND: ["GPU-0", "GPU-7"]}, "each case's device can be told"


@pytest.mark.parametrize("other,says", [
    ({"name": "another processor"}, "fake device on HOST in attempt 1, another processor on HOST now"),
    ({"torch": "9.9.9"}, "torch none in attempt 1, 9.9.9 now"),
])
def test_another_processor_or_library_is_another_place(tmp_path, other, says):
    break_off(tmp_path)
    done = resume(tmp_path, script=[{"do": "device"} | other])
    assert done.returncode == 2 and says.replace("HOST", os.uname().nodename) in done.stderr, done.stderr


def test_where_nothing_was_measured_yet_a_run_may_go_anywhere(tmp_path):
    folder, _, _ = break_off(tmp_path, case="eager.c1", at="prepare", until=(), device="cuda", fabric="off")
    done = resume(tmp_path, script=ELSEWHERE)
    assert done.returncode == 0, done.stderr
    assert statuses(folder) == {case: "passed" for case in ALL} and "moved" not in summary(folder)["run"]


def test_a_resume_that_is_stopped_before_it_measures_leaves_the_run_as_it_was(tmp_path):
    folder, _, _ = break_off(tmp_path)
    before = content(folder)
    running, _ = start(tmp_path, "--resume", "run", script=[{"at": "hello", "do": "hang"}])
    wait_until(lambda: len(ranks_of(tmp_path)) == 2 and (folder / "logs" / "rank-00001.log").exists())
    for sig in (signal.SIGINT, signal.SIGTERM):
        kill(running.pid, sig)
        wait_until(lambda: running.poll() is not None or sig == signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    now = content(folder)
    assert {k: v for k, v in now.items() if k.suffix == ".cbor"} == {k: v for k, v in before.items() if k.suffix == ".cbor"}
    assert resume(tmp_path).returncode == 0
    assert statuses(folder) == {case: "passed" for case in ALL}


def test_a_folder_that_names_the_last_run_is_resumed_and_stays_the_last(tmp_path):
    job = write_job(tmp_path, timeouts_s=PATIENT)
    running = subprocess.Popen([str(PLATEAU), "run", str(job), "-n", "2", "--grace", "0"], cwd=tmp_path, text=True,
                               env=environment([{"case": "eager.c2", "at": "timed", "do": "hang"}]), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    latest = tmp_path / "runs" / "latest"
    wait_until(lambda: latest.exists() and has(latest, "eager.c1"))
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    folder = latest.resolve()
    done = plateau("run", "--resume", "runs/latest", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert latest.resolve() == folder and done.stdout.splitlines()[-1] == f"runs/{folder.name}"


@needs_mounts
@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_a_rank_that_cannot_write_into_the_folder_is_named_before_anything_starts(tmp_path, resumed):
    if resumed:
        folder, _, _ = break_off(tmp_path)
        what = ["--resume", str(folder)]
    else:
        what = [str(write_job(tmp_path)), "-o", str(tmp_path / "run")]
    command = [str(PLATEAU), "run", *what]
    read_only = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path} && exec {shlex.join(command)}"
    done = subprocess.run(["mpirun", "--bind-to", "none", "--host", "localhost:2", "-n", "1", *command, ":", "-n", "1",
                           "unshare", "-m", "sh", "-c", read_only], cwd="/", env=environment(), text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2, done.stderr
    assert f"rank 1 on {os.uname().nodename}: cannot write into the run folder {tmp_path}/run: Read-only file system" in done.stderr
    assert (tmp_path / "run").exists() == resumed and (not resumed or "missing" in statuses(tmp_path / "run").values())


@needs_mounts
def test_ranks_with_a_folder_of_their_own_go_on_with_it_and_it_is_a_whole_run_folder(tmp_path):
    with another_disk_at(tmp_path / "own") as elsewhere:
        folder = tmp_path / "own" / "run"

        def go(*what, script=()):
            command = [str(PLATEAU), "run", *map(str, what)]
            return subprocess.Popen(["mpirun", "--bind-to", "none", "--host", "localhost:2", "-n", "1", *command, ":", "-n", "1",
                                     *elsewhere, *command], cwd=tmp_path, env=environment(script), text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        running = go(write_job(tmp_path, timeouts_s=PATIENT), "-o", folder, "--grace", "0",
                     script=[{"case": "arena.c1", "at": "timed", "do": "hang"}])
        wait_until(lambda: has(folder, "eager.c1", "eager.c2"))
        kill(running.pid, signal.SIGUSR1)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 75 and "to go on: plateau run --resume" in out, err
        out, err = go("--resume", folder).communicate(timeout=60)
        assert "2 of 4 cases are there" in err and statuses(folder) == {case: "passed" for case in ALL}, err
        there = subprocess.run([*elsewhere, "find", str(folder), "-type", "f", "-printf", "%P\n"], text=True, capture_output=True)
    own = {line for line in there.stdout.splitlines() if not line.startswith("logs/")}
    assert own == {"job.json", "run.json", *(f"cases/{case}/rank-00001.cbor" for case in ALL[:2]),
                   *(f"cases/{case}/rank-00001.attempt-2.cbor" for case in ALL[2:])}


def test_gates_that_are_asked_anew_judge_a_complete_run(tmp_path):
    done = plateau("run", write_job(tmp_path), "-o", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for gates, code in (("churn", 4), ("none", 0)):
        again = plateau("run", "--resume", "run", "--fail-on", gates, cwd=tmp_path)
        assert again.returncode == code, again.stderr
