# SPDX-License-Identifier: Apache-2.0
"""script/gpu-check itself: what it says without a GPU, and how a check that goes wrong is told. No GPU is needed."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

from plateau_test import BIN, environment, processes_naming, wait_until

SCRIPT = pathlib.Path(__file__).parents[2] / "script" / "gpu-check"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check


def gpu_check(folder, *arguments, **variables):
    env = environment(worker=BIN / "plateau-worker", BUILD=str(BIN.parent), **variables)
    return subprocess.run([str(SCRIPT), *arguments], cwd=folder, env=env, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=100)


@pytest.fixture
def machine(tmp_path):
    return check.Machine(BIN.parent, tmp_path)


def test_without_a_gpu_it_says_so_in_one_sentence(tmp_path):
    done = gpu_check(tmp_path, "-o", "out", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "no GPU to check: " in done.stderr and "no CUDA device is visible" in done.stderr


def test_it_never_writes_into_a_folder_that_is_there(tmp_path):
    (tmp_path / "out").mkdir()
    done = gpu_check(tmp_path, "-o", "out")
    assert done.returncode == 2 and "name a new folder" in done.stderr


def test_the_folder_may_come_before_the_checks(tmp_path):
    done = gpu_check(tmp_path, "-o", "out", "seeds")
    assert done.returncode == 2 and "seeds: no such check" in done.stderr


def test_a_check_that_it_does_not_have_is_refused_with_those_that_it_has(tmp_path):
    done = gpu_check(tmp_path, "seeds")
    assert done.returncode == 2 and "seeds: no such check; there are device, tests, seed" in done.stderr


@pytest.mark.parametrize("outcome, line, fails", [
    (lambda machine: "all well", "tests      ok       all well", False),
    (lambda machine: (_ for _ in ()).throw(check.Skipped("not here")), "tests      skipped: not here", False),
    (lambda machine: (_ for _ in ()).throw(check.Failed("as bad as that")), "tests      FAILED   as bad as that", True),
    (lambda machine: {}["results"], "tests      FAILED   KeyError: 'results'", True),
])
def test_each_check_is_one_line(machine, monkeypatch, capsys, outcome, line, fails):
    monkeypatch.setitem(check.CHECKS, "tests", (outcome, 10))
    assert check.made(machine, "tests") is fails
    assert capsys.readouterr().out.startswith(line)


def test_what_does_not_end_in_time_is_ended_with_its_children(machine):
    machine.begin(1)
    mark = f"gpu-check-{os.getpid()}-{time.monotonic_ns()}"
    with pytest.raises(check.Failed, match="did not end within"):
        machine.run("bash", "-c", f"sleep 1000 & : {mark}; sleep 1000")
    wait_until(lambda: processes_naming(mark) == [])


def test_a_check_for_which_no_time_is_left_has_failed(machine):
    machine.whole = time.monotonic() - 1
    machine.begin(10)
    with pytest.raises(check.Failed, match="no time was left"):
        machine.run("true")


@pytest.mark.parametrize("name, gpu", [("NVIDIA H200", "h200"), ("NVIDIA A100-SXM4-80GB", "a100"),
                                       ("NVIDIA GeForce RTX 3060", "sm=8.6,memory=11GiB")])
def test_a_rehearsal_is_of_this_gpu(name, gpu):
    device = {"name": name, "compute_capability": "8.6", "memory_bytes": (12 << 30) - 1}
    assert check.gpu_for_rehearsal({"ranks": [{"device": device}]}) == gpu
