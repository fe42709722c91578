# SPDX-License-Identifier: Apache-2.0
"""Findings and gates from the worker's numbers to the exit code, with a worker that makes its numbers up."""
import json
import subprocess
import xml.etree.ElementTree as xml

import pytest

from plateau_test import PLATEAU, environment, plateau, run, summary, write_job

LEAK = [{"rank": 1, "case": "eager.c2", "do": "leak", "bytes": 4096, "every_window": True}]
SLOW = [{"rank": 1, "case": "eager.c2", "do": "slow_latency", "factor": 2}]
SOAK = {"windows": 12, "requests_per_window": 10}


def judged(folder, *arguments, script=(), **fields):
    return run(folder, "-n", "2", *arguments, script=script, soak=SOAK, requests_per_worker=400, **fields)


def checks(folder):
    return {(f["check"], f["case_id"]) for f in summary(folder)["findings"]} - {("churn", "eager.c1"), ("churn", "eager.c2")}


def test_a_healthy_run_has_no_finding_but_eagers_churn(tmp_path):
    done, folder = judged(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert checks(folder) == set()
    assert "PLATEAU in 4 of 4 measured cases" in done.stdout


def test_a_leak_on_one_rank_fails_the_default_gate_and_is_named_everywhere(tmp_path):
    done, folder = judged(tmp_path, script=LEAK)
    assert done.returncode == 4, done.stdout + done.stderr
    found, = [f for f in summary(folder)["findings"] if f["check"] == "growing"]
    assert (found["case_id"], found["ranks"], found["evidence"]["op"]) == ("eager.c2", [1], "plateau::planted_leak/aten::empty")
    assert "eager.c2  growing  rank 1: live memory grows by " in done.stdout
    assert "gate failed: growing in eager.c2" in done.stdout
    assert json.loads((folder / "outcome.json").read_text())["exit_code"] == 4
    assert summary(folder)["run"]["outcome"]["exit_code"] == 4
    for arguments, code in [([], 4), (["--fail-on", "none"], 0), (["--fail-on", "churn"], 4), (["--fail-on", "skipped"], 0)]:
        assert plateau("show", "run", *arguments, cwd=tmp_path).returncode == code, arguments
    suite = xml.fromstring(plateau("show", "run", "--format", "junit", cwd=tmp_path).stdout)
    failed = [(t.get("classname"), t.get("name")) for t in suite if t.find("failure") is not None]
    assert failed == [("eager.c2", "growing")]


def test_other_gates_are_chosen_by_name(tmp_path):
    done, folder = judged(tmp_path, "--fail-on", "straggler", script=LEAK + SLOW)
    assert done.returncode == 4 and "gate failed: straggler in eager.c2" in done.stdout
    assert {("growing", "eager.c2"), ("straggler", "eager.c2")} <= checks(folder)


def test_no_gate_is_a_choice(tmp_path):
    done, folder = judged(tmp_path, "--fail-on", "none", script=LEAK)
    assert done.returncode == 0 and ("growing", "eager.c2") in checks(folder)


def test_ranks_started_by_the_user_exit_with_the_gates_code(tmp_path):
    job = write_job(tmp_path, soak=SOAK)
    done = subprocess.run(["mpirun", "-n", "2", "--bind-to", "none", str(PLATEAU), "run", str(job), "-o", "run"],
                          cwd=tmp_path, env=environment(LEAK), text=True, capture_output=True, timeout=60)
    assert done.returncode == 4, done.stderr
    assert "gate failed: growing in eager.c2" in done.stdout


def test_a_run_that_is_assembled_again_has_the_same_gates(tmp_path):
    judged(tmp_path, script=LEAK)
    (tmp_path / "run" / "summary.json").unlink()
    assert plateau("assemble", "run", cwd=tmp_path).returncode == 4


def test_a_case_that_did_not_pass_weighs_more_than_a_gate(tmp_path):
    crash = [{"rank": 0, "case": "arena.c1", "at": "timed", "do": "segv"}]
    done, folder = judged(tmp_path, script=LEAK + crash)
    assert done.returncode == 3 and ("growing", "eager.c2") in checks(folder)


@pytest.mark.parametrize("gates, says", [("grow", "is no check; choose from growing"), ("growing,", "is no check")])
def test_an_unknown_gate_is_refused_before_anything_starts(tmp_path, gates, says):
    done, folder = judged(tmp_path, "--fail-on", gates)
    assert done.returncode == 2 and says in done.stderr and not folder.exists()


def test_a_gate_that_could_not_fail_is_refused(tmp_path):
    done, folder = run(tmp_path, "--fail-on", "growing", soak={"windows": 0})
    assert done.returncode == 2 and "needs a soak" in done.stderr and not folder.exists()


def test_a_fault_planted_on_no_rank_is_refused(tmp_path):
    done, folder = run(tmp_path, "-n", "2", "--inject", "leak:rank=2")
    assert done.returncode == 2 and "the ranks are 0 to 1" in done.stderr and not folder.exists()


def test_the_table_warns_of_what_was_planted(tmp_path):
    done, folder = judged(tmp_path, "--inject", "crash:rank=1,case=arena.c2",
                          script=[{"rank": 1, "case": "arena.c2", "at": "timed", "do": "segv"}])
    assert done.returncode == 3
    assert "warning  arena.c2, rank 1: a fault was planted in this case: crash:rank=1,case=arena.c2" in done.stdout
