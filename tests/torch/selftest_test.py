# SPDX-License-Identifier: Apache-2.0
"""plateau selftest: passes here within a minute, and does notice a detector that is off."""
import os
import time

import pytest

from plateau_test import plateau


def selftest(tmp_path, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "SLURM_"))}
    return plateau("selftest", *arguments, cwd=tmp_path, env=dict(env, TMPDIR=str(tmp_path)), timeout=180)


def test_catches_every_planted_fault_within_a_minute_and_leaves_nothing(tmp_path):
    began = time.monotonic()
    done = selftest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 60
    planted = [line.split()[2] for line in done.stdout.splitlines() if line.split()[1] == "planted"]
    assert planted == ["nothing", "leak", "slow", "crash", "garbage", "oom", "hang"]
    assert "WRONG" not in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("detector, planted", [("growing", "leak"), ("straggler", "slow")])
def test_fails_when_a_detector_is_off(tmp_path, detector, planted):
    done = selftest(tmp_path, "--blind-to", detector)
    assert done.returncode == 4, done.stdout + done.stderr
    wrong = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
    assert len(wrong) == 1 and f"planted {planted}" in wrong[0]
