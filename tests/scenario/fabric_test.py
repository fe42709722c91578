# SPDX-License-Identifier: Apache-2.0
"""The ranks' side of the fabric check, on workers that only say that they have GPUs: who is asked, what is passed on, and
how a check that fails ends the run."""
import signal
import subprocess
import time

import pytest

from plateau_test import PLATEAU, environment, kill, plateau, processes_naming, run, summary, wait_until, write_job

QUICK = {"compile": 2, "prepare": 2, "stall": 1, "collective": 3, "fabric": 1}
GPUS = {"device": "cuda", "modes": ["eager"], "concurrency_levels": [1], "timeouts_s": QUICK}


def check(folder, *arguments, script=(), **fields):
    return run(folder, "-n", "3", *arguments, script=script, **{**GPUS, **fields})


def logs(folder):
    return [(folder / "logs" / f"rank-{rank:05}.log").read_text() for rank in range(3)]


def assert_refused(done, folder, *sentences):
    """Exit 2, nothing measured, the reason said and kept, and the folder with the logs still there."""
    assert done.returncode == 2, done.stderr
    for sentence in ("the GPUs cannot work together, so nothing was measured", "NCCL_DEBUG=INFO", f"{folder}/logs",
                     *sentences):
        assert sentence in done.stderr, done.stderr
    said = summary(folder)
    assert said["status"] == "failed" and said["fabric"]["status"] == "failed"
    assert said["run"]["outcome"]["exit_code"] == 2
    assert said["fabric"]["reason"] in done.stderr and said["fabric"]["reason"] in said["run"]["outcome"]["reason"]
    assert [case["status"] for case in said["cases"]] == ["missing"]
    assert not list(folder.rglob("*.cbor"))
    assert plateau("validate", folder, cwd=folder.parent).returncode == 0
    wait_until(lambda: processes_naming(str(folder.parent)) == [], 10)


def test_ranks_with_a_gpu_each_are_checked_before_the_first_case(tmp_path):
    done, folder = check(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fabric: NCCL 2.28.9, all-reduce of 128 MiB at 44.44 GB/s bus bandwidth (slowest: rank 2)" in done.stderr
    assert done.stderr.index("fabric:") < done.stderr.index("eager.c1")
    fabric = summary(folder)["fabric"]
    assert fabric["status"] == "passed" and fabric["nccl_bytes"] == 528 << 20
    assert [on["rank"] for on in fabric["ranks"]] == [0, 1, 2]
    assert [(at["bytes"], at["slowest_rank"]) for at in fabric["all_reduce"]] == [(64 << 10, 2), (128 << 20, 2)]


def test_the_id_that_rank_0s_worker_made_reaches_every_worker_as_it_is_and_is_not_kept(tmp_path):
    done, folder = check(tmp_path)
    made = f"checks the fabric of 3 ranks: the id that rank 0 of {summary(folder)['run']['run_id']} made"
    assert all(made in log for log in logs(folder)), logs(folder)
    assert "the id that rank 0" not in (folder / "run.json").read_text() + (folder / "summary.json").read_text()


@pytest.mark.parametrize("isolation", ["case", "run"])
def test_the_worker_of_the_check_measures_no_case(tmp_path, isolation):
    done, folder = check(tmp_path, isolation=isolation)
    assert done.returncode == 0, done.stderr


def test_a_sum_that_is_wrong_on_one_rank_names_that_rank(tmp_path):
    wrong = {"do": "fabric", "rank": 1, "step": "comparing", "reason": "an all-reduce gave 25 instead of 24"}
    done, folder = check(tmp_path, "--env", "NCCL_IB_DISABLE=1", script=[wrong])
    assert_refused(done, folder, "rank 1 on ", ": an all-reduce gave 25 instead of 24",
                   "in effect: NCCL_IB_DISABLE=1;", "nvidia-smi nvlink")
    assert "rank 0" not in summary(folder)["fabric"]["reason"]


def test_a_check_that_is_never_ready_names_every_rank(tmp_path):
    late = {"do": "fabric", "step": "initialising", "reason": "ncclCommInitRankConfig was not done in time"}
    done, folder = check(tmp_path, script=[late])
    assert_refused(done, folder, "ranks 0-2 on ", "no NCCL_* variable is set", "NCCL_SOCKET_IFNAME", "/dev/shm")


def test_ranks_with_different_versions_of_nccl_are_refused_before_any_of_them_waits(tmp_path):
    done, folder = check(tmp_path, script=[{"do": "nccl", "rank": 2, "version": "2.19.3"}])
    assert_refused(done, folder, "ranks 0-1 on ", "NCCL 2.28.9 from libnccl.so.2", "rank 2 on ", "NCCL 2.19.3")
    assert not any("checks the fabric" in log for log in logs(folder))


@pytest.mark.parametrize("at", ["open_fabric", "check_fabric"])
@pytest.mark.parametrize("do, says", [("segv", "killed by SIGSEGV"), ("hang", "did not finish checking the fabric within 2 s"),
                                      ("fail", "planted failure"), ("garbage", "not of the protocol"),
                                      ("wrong_answer", "answered with something else")])
def test_a_worker_that_goes_wrong_in_the_check_is_named(tmp_path, at, do, says):
    done, folder = check(tmp_path, script=[{"do": do, "at": at, "rank": 1}])
    assert_refused(done, folder, "rank 1 on ", says)


def test_a_check_that_failed_is_measured_without_when_the_user_says_so(tmp_path):
    broken = {"do": "fabric", "step": "initialising", "reason": "broken"}
    done, folder = check(tmp_path, "--fabric", "off", script=[broken])
    assert done.returncode == 0, done.stderr
    assert summary(folder)["fabric"]["status"] == "not_checked"
    assert summary(folder)["fabric"]["reason"] == 'the job says "fabric": "off"'


@pytest.mark.parametrize("script, flags, fields, why", [
    ([], [], {"device": "cpu"}, "has no GPU"),
    ([{"do": "same_gpu"}], ["--allow-shared-gpu"], {}, "ranks 0 and 1 on "),
])
def test_where_there_is_no_fabric_auto_goes_on_and_check_is_refused(tmp_path, script, flags, fields, why):
    done, folder = check(tmp_path, *flags, script=script, **fields)
    assert done.returncode == 0, done.stderr
    assert summary(folder)["fabric"]["status"] == "not_checked" and why in summary(folder)["fabric"]["reason"]
    (tmp_path / "checked").mkdir()
    done, folder = check(tmp_path / "checked", "--fabric", "check", *flags, script=script, **fields)
    assert done.returncode == 2 and why in done.stderr, done.stderr
    assert '"fabric": "check" needs at least two ranks, each with a GPU of its own' in done.stderr
    assert not folder.exists()


def test_under_a_launcher_of_the_users_rank_0_alone_exits_with_the_code(tmp_path):
    broken = {"do": "fabric", "rank": 2, "step": "reducing", "reason": "broken"}
    done = subprocess.run(["mpirun", "--bind-to", "none", "--oversubscribe", "-n", "3", str(PLATEAU), "run",
                           str(write_job(tmp_path, **GPUS)), "-o", f"{tmp_path}/run"], cwd=tmp_path,
                          env=environment([broken]), text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "rank 2 on " in done.stderr and "broken" in done.stderr


def test_asked_to_stop_during_the_check_the_run_stops_and_says_so(tmp_path):
    slow = {"do": "slow", "at": "check_fabric", "seconds": 20}
    running = subprocess.Popen([str(PLATEAU), "run", str(write_job(tmp_path, **GPUS)), "-n", "2", "-o", "run"], cwd=tmp_path,
                               env=environment([slow]), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    wait_until(lambda: "checks the fabric" in "".join(p.read_text() for p in tmp_path.rglob("rank-*.log")))
    time.sleep(0.3)
    kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert running.returncode == 75, err
    assert summary(tmp_path / "run")["fabric"]["reason"] == "a stop was asked for"
    wait_until(lambda: processes_naming(str(tmp_path)) == [], 10)
