# SPDX-License-Identifier: Apache-2.0
"""plateau run, from the shell to the results, on real MPI ranks with a worker that makes up its numbers."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from plateau_test import (PLATEAU, environment, kill, needs_mounts, plateau, processes_naming, run, statuses, summary,
                          wait_until, write_job)

ALL = ["eager.c1", "eager.c2", "arena.c1", "arena.c2"]


def test_a_run_on_two_ranks_leaves_every_result_and_shows_the_table(tmp_path):
    done, folder = run(tmp_path, "-n", "2")
    assert done.returncode == 0, done.stderr
    assert statuses(folder) == {case: "passed" for case in ALL}
    assert sorted(p.name for p in (folder / "cases" / "eager.c1").iterdir()) == ["rank-00000.cbor", "rank-00001.cbor"]
    assert {"run.h5", "summary.json", "run.json", "job.json", "outcome.json"} <= {p.name for p in folder.iterdir()}
    assert "eager.c1" in done.stdout and "2/2" in done.stdout
    assert done.stdout.splitlines()[-1] == "run", "the run folder's path is printed last"
    assert "4/4 arena.c2" in done.stderr
    assert not list(folder.glob("*.partial")) and not list(folder.glob(".*"))


def test_ranks_started_by_the_user_do_the_same(tmp_path):
    job = write_job(tmp_path)
    done = subprocess.run(["mpirun", "-n", "2", "--bind-to", "none", str(PLATEAU), "run", str(job), "-o", "run"],
                          cwd=tmp_path, env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert statuses(tmp_path / "run") == {case: "passed" for case in ALL}
    assert "eager.c1" in done.stdout
    assert json.loads((tmp_path / "run" / "run.json").read_text())["launcher"] == "external"


def test_runs_latest_points_to_the_last_run(tmp_path):
    done = plateau("run", write_job(tmp_path, modes=["eager"]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / done.stdout.splitlines()[-1]
    assert folder.parent == tmp_path / "runs" and (tmp_path / "runs" / "latest").resolve() == folder.resolve()
    assert summary(folder)["run"]["run_id"] == folder.name
    shown = plateau("show", "runs/latest", cwd=tmp_path)
    assert shown.returncode == 0 and "eager.c2" in shown.stdout
    assert json.loads(plateau("show", "runs/latest", "--format", "json", cwd=tmp_path).stdout) == summary(folder)


def test_counts_are_summed_over_ranks(tmp_path):
    done, folder = run(tmp_path, "-n", "3")
    assert done.returncode == 0, done.stderr
    eager = next(r for r in summary(folder)["results"] if r["case_id"] == "eager.c2")
    assert eager["total_requests"] == 3 * 2 * 20
    assert eager["allocation_event_delta"] == 11 * eager["total_requests"]
    assert [r["allocation_event_delta"] for r in eager["ranks"]] == [11 * 40] * 3


@pytest.mark.parametrize("at", ["prepare", "timed", "soak", "finishing"])
@pytest.mark.parametrize("fault,status,reason", [
    ("segv", "crashed", "killed by SIGSEGV"),
    ("kill", "crashed", "killed by SIGKILL"),
    ("exit", "crashed", "exited with code 3"),
    ("garbage", "crashed", "not of the protocol"),
    ("half_frame", "crashed", "exited with code 0"),
    ("huge_frame", "crashed", "claims 2147483647 bytes"),
    ("fail", "failed", "planted failure"),
    ("oom", "out_of_memory", "planted out of memory"),
])
def test_a_worker_that_goes_wrong_costs_its_case_on_its_rank(tmp_path, at, fault, status, reason):
    done, folder = run(tmp_path, "-n", "2", script=[{"rank": 1, "case": "eager.c2", "at": at, "do": fault}])
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {case: "passed" if case != "eager.c2" else status for case in ALL}
    case = next(c for c in summary(folder)["cases"] if c["case_id"] == "eager.c2")
    assert reason in json.dumps(case)
    assert reason in done.stderr and "rank 1" in done.stderr


@pytest.mark.parametrize("at", ["prepare", "timed", "soak"])
def test_a_worker_that_hangs_is_timed_out_and_its_case_alone_is_lost(tmp_path, at):
    done, folder = run(tmp_path, "-n", "2", script=[{"rank": 0, "case": "eager.c1", "at": at, "do": "hang"}],
                       timeouts_s={"compile": 20, "prepare": 1, "stall": 1, "collective": 10})
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {case: "passed" if case != "eager.c1" else "timed_out" for case in ALL}
    assert processes_naming(str(tmp_path)) == []


def test_what_a_lost_worker_started_is_not_left_behind(tmp_path):
    done, folder = run(tmp_path, script=[{"case": "eager.c2", "at": "timed", "do": "grandchild"}])
    assert done.returncode == 3, done.stderr
    assert "killed by SIGSEGV" in done.stderr
    wait_until(lambda: processes_naming(str(tmp_path)) == [])


def test_a_skipped_case_is_not_a_failure(tmp_path):
    done, folder = run(tmp_path, "-n", "2", script=[{"case": "arena.c1", "at": "prepare", "do": "skip"}])
    assert done.returncode == 0, done.stderr
    assert statuses(folder)["arena.c1"] == "skipped"
    assert "planted skip" in done.stdout


def test_one_worker_serves_all_cases_when_the_job_says_so(tmp_path):
    done, folder = run(tmp_path, isolation="run", script=[{"case": "eager.c2", "at": "timed", "do": "segv"}])
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {"eager.c1": "passed", "eager.c2": "crashed", "arena.c1": "passed", "arena.c2": "passed"}


def rank_processes(tmp_path):
    found = []
    for pid in processes_naming(str(tmp_path)):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"plateau") and b"--as-rank" in words:
            found.append(pid)
    return found


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_loses_no_finished_case(tmp_path, victim):
    job = write_job(tmp_path)
    running = subprocess.Popen([str(PLATEAU), "run", str(job), "-n", "2", "-o", "run"], cwd=tmp_path, text=True,
                               env=environment([{"case": "arena.c1", "at": "timed", "do": "hang"}]),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    folder = tmp_path / "run"
    wait_until(lambda: all((folder / "cases" / "eager.c2" / f"rank-0000{r}.cbor").exists() for r in (0, 1)))
    ranks = sorted(rank_processes(tmp_path))
    assert len(ranks) == 2
    kill(ranks[victim])
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    assert statuses(folder) == {"eager.c1": "passed", "eager.c2": "passed", "arena.c1": "missing", "arena.c2": "missing"}
    assert summary(folder)["status"] == "partial"
    assert {m["case_id"] for m in summary(folder)["missing"]} == {"arena.c1", "arena.c2"}
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 10)

    for name in ("run.h5", "summary.json"):
        (folder / name).unlink()
    again = plateau("assemble", folder, cwd=tmp_path)
    assert again.returncode == 75, again.stderr
    assert (folder / "run.h5").exists() and statuses(folder)["eager.c2"] == "passed"


def test_interrupted_once_the_current_case_is_finished_and_the_rest_is_missing(tmp_path):
    job = write_job(tmp_path)
    running = subprocess.Popen([str(PLATEAU), "run", str(job), "-n", "2", "-o", "run"], cwd=tmp_path, text=True,
                               env=environment([{"case": "eager.c2", "at": "timed", "do": "slow"}]),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    folder = tmp_path / "run"
    wait_until(lambda: all((folder / "cases" / "eager.c1" / f"rank-0000{r}.cbor").exists() for r in (0, 1)))
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    found = statuses(folder)
    assert found["eager.c1"] == "passed" and found["arena.c2"] == "missing"
    assert "stopped on request" in err


def test_interrupted_twice_it_stops_at_once(tmp_path):
    job = write_job(tmp_path, timeouts_s={"stall": 600})
    running = subprocess.Popen([str(PLATEAU), "run", str(job), "-n", "2", "-o", "run"], cwd=tmp_path, text=True,
                               env=environment([{"case": "eager.c2", "at": "timed", "do": "hang"}]),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    folder = tmp_path / "run"
    wait_until(lambda: (folder / "cases" / "eager.c1" / "rank-00000.cbor").exists())
    kill(running.pid, signal.SIGINT)
    assert "once more to stop now" in running.stderr.readline() + running.stderr.readline() + running.stderr.readline()
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 75, err
    assert statuses(folder)["eager.c1"] == "passed"
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 10)


def test_nothing_existing_is_overwritten(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("dear")
    done, folder = run(tmp_path)
    assert done.returncode == 2 and "never overwrites" in done.stderr
    assert (folder / "mine").read_text() == "dear" and len(list(folder.iterdir())) == 1


def test_a_bad_job_is_refused_with_all_its_problems_before_anything_starts(tmp_path):
    job = tmp_path / "bad.json"
    job.write_text('{"concurency_levels": [1], "batch": 0, "modes": ["eager", "compiled", "arean"]}')
    done = plateau("run", job, "-n", "2", cwd=tmp_path)
    assert done.returncode == 2
    for text in ("3 problems", "/concurency_levels", "did you mean concurrency_levels?", "/batch", "/modes/2", "arena"):
        assert text in done.stderr, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]


def test_a_refusal_by_the_worker_stops_the_run_with_its_words(tmp_path):
    done, folder = run(tmp_path, "-n", "2", script=[{"rank": 1, "at": "hello", "do": "fail"}])
    assert done.returncode == 2 and "rank 1" in done.stderr and "planted failure" in done.stderr
    assert not folder.exists()


def test_dry_run_lists_the_cases_of_the_seeds_own_result_file(tmp_path):
    seed = os.path.join(os.path.dirname(__file__), "..", "data", "seed_result.json")
    shutil.copy(seed, tmp_path / "result.json")
    done = plateau("run", "result.json", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:6] == ["eager.c4", "eager.c8", "compiled_aten.c4", "compiled_aten.c8", "arena.c4",
                                            "arena.c8"]
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_any_field_of_the_job_can_be_given_as_a_flag(tmp_path):
    done, folder = run(tmp_path, "--modes", "arena", "--concurrency-levels", "1,3", "--soak", "windows=2", "--repeats", "2")
    assert done.returncode == 0, done.stderr
    assert list(statuses(folder)) == ["arena.c1.r1", "arena.c3.r1", "arena.c1.r2", "arena.c3.r2"]
    assert summary(folder)["meta"]["soak"]["windows"] == 2


@needs_mounts
def test_ranks_that_do_not_share_a_folder_send_what_they_measured(tmp_path):
    (tmp_path / "own").mkdir()
    command = f"{PLATEAU} run {write_job(tmp_path)} -o {tmp_path}/own/run"
    own = f"mount -t tmpfs tmpfs {tmp_path}/own && {command} && ls {tmp_path}/own/run/cases >&2"
    done = subprocess.run(["mpirun", "--bind-to", "none", "--host", "localhost:2", "-n", "1", *command.split(), ":",
                           "-n", "1", "unshare", "-m", "sh", "-c", own],
                          cwd=tmp_path, env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "own" / "run"
    assert statuses(folder) == {case: "passed" for case in ALL}
    assert len(list((folder / "cases").rglob("rank-00001.cbor"))) == 4, "gathered over MPI"
    assert len(list((folder / "logs").iterdir())) == 1, "rank 1 really had a folder of its own"


def test_ranks_bound_to_one_core_each_are_told_of(tmp_path):
    job = write_job(tmp_path, concurrency_levels=[2])
    done = subprocess.run(["mpirun", "-n", "2", "--bind-to", "core", str(PLATEAU), "run", str(job), "-o", "run"],
                          cwd=tmp_path, env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--bind-to none" in done.stderr
    devices = [r["device"] for r in json.loads((tmp_path / "run" / "run.json").read_text())["ranks"]]
    assert [d["cpus"] for d in devices] == [1, 1]


def test_ranks_started_by_plateau_are_not_bound(tmp_path):
    done, folder = run(tmp_path, "-n", "2")
    devices = [r["device"] for r in json.loads((folder / "run.json").read_text())["ranks"]]
    assert [d["cpus"] for d in devices] == [len(os.sched_getaffinity(0))] * 2


def test_devices_says_what_a_worker_sees(tmp_path):
    done = plateau("devices", "-n", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "local rank 1: cpu, fake device" in done.stdout


def test_a_worker_that_refuses_to_say_what_it_sees_keeps_its_log(tmp_path):
    done = plateau("devices", cwd=tmp_path, env=environment([{"at": "hello", "do": "fail"}], TMPDIR=str(tmp_path)))
    assert done.returncode == 2 and "planted failure" in done.stderr
    assert list(tmp_path.glob("plateau-devices-*.log"))


def test_a_job_whose_file_name_is_not_text_runs(tmp_path):
    job = os.fsencode(write_job(tmp_path, modes=["eager"]).rename(tmp_path / "j\udce9.json"))
    done = subprocess.run([str(PLATEAU), "run", job, "-o", "run"], cwd=tmp_path, env=environment(), capture_output=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr
