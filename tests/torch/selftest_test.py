# SPDX-License-Identifier: Apache-2.0
"""plateau selftest: passes here within a minute, and does notice a detector that is off."""
import os
import resource
import signal
import subprocess

import pytest

from plateau_test import PLATEAU, plateau, processes_naming, wait_until


def own_environment(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "SLURM_"))}
    return dict(env, TMPDIR=str(tmp_path))


def selftest(tmp_path, *arguments):
    return plateau("selftest", *arguments, cwd=tmp_path, env=own_environment(tmp_path), timeout=180)


def cpu_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_catches_every_planted_fault_within_a_minute_and_leaves_nothing(tmp_path):
    before = cpu_seconds_of_children()
    done = selftest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cpu_seconds_of_children() - before < 60, "not the wall time, which is other programs', too"
    planted = [line.split()[2].split(":")[0] for line in done.stdout.splitlines() if line.split()[1] == "planted"]
    assert planted == ["nothing", "leak", "leak", "slow", "slow", "crash", "garbage", "oom", "hang"]
    assert "WRONG" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_stopped_it_leaves_neither_a_process_nor_a_folder(tmp_path):
    running = subprocess.Popen([str(PLATEAU), "selftest"], env=own_environment(tmp_path), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    wait_until(lambda: list(tmp_path.glob("*/judged/run.json")), 60)
    running.terminate()
    out, err = running.communicate(timeout=20)
    assert running.returncode == 128 + signal.SIGTERM and "stopped on request" in err
    assert processes_naming(str(tmp_path)) == [] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("detector, planted", [
    ("growing", "leak:every=5"), ("unequal", "leak:every=5"), ("straggler", "slow:ms=5"), ("unsteady", "slow:ms=1")])
def test_fails_when_a_detector_is_off(tmp_path, detector, planted):
    done = selftest(tmp_path, "--blind-to", detector)
    assert done.returncode == 4, done.stdout + done.stderr
    wrong = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
    kind = planted.split(":")[0]
    assert f"planted {planted}" in wrong[0] and all(f"planted {kind}" in w or "exit code" in w for w in wrong)
