# SPDX-License-Identifier: Apache-2.0
"""Jobs that end before they are done come back and go on; the runs of an array become one."""
from plateau_test import plateau, statuses, summary, wait_until
from slurm_cluster import (ALL_PASSED, PATIENCE, assert_nothing_runs, job_state, needs_cluster, output, ranks_of,
                           run_folder, signal_of_the_time_limit, slurm, submit, wait_for_case, wait_for_end)

pytestmark = needs_cluster

PATIENT = {"compile": 20, "prepare": 60, "stall": 600, "collective": 20}
FINISHED = ["eager.c1", "eager.c2"]


def submit_stuck(folder, *arguments):
    """A job whose third case does not end, until the file `unstuck` is there."""
    script = [{"rank": 3, "case": "arena.c1", "at": "timed", "do": "hang", "unless": str(folder / "unstuck")}]
    job = submit(folder, "--grace", "0", *arguments, script=script, timeouts_s=PATIENT)
    wait_for_case(run_folder(folder, job), "arena.c1", ranks=3)
    return job


def results_of(run, cases):
    """When each rank's result was written, and what it holds."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for case in cases for path in (run / "cases" / case).iterdir()}


def wait_for_requeue(job):
    return wait_until(lambda: (s := job_state(job))["Restarts"] == "1" and s["JobState"] == "PENDING" and s, PATIENCE)


def go_on(folder, job):
    """Slurm lets a requeued job wait for two minutes. It has to wait for the next second: a node does not start a job of the
    second in which it ended it."""
    (folder / "unstuck").touch()
    slurm("scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")


def assert_complete_with_no_case_run_twice(folder, job, before):
    run = run_folder(folder, job)
    assert wait_for_end(job) == 0, output(folder, job)
    assert statuses(run) == ALL_PASSED
    assert len(before) == 4 * len(FINISHED) and results_of(run, FINISHED) == before
    assert summary(run)["status"] == "ok" and summary(run)["missing"] == []
    assert len(list((folder / "runs").glob("job-*/"))) == 1, "all in one folder"
    assert_nothing_runs(folder)


def test_a_job_that_slurm_stops_at_its_time_limit_comes_back_and_goes_on(tmp_path):
    job = submit_stuck(tmp_path, "--time", "1", "--", "--signal=B:USR1@5")
    before = results_of(run_folder(tmp_path, job), FINISHED)
    wait_for_requeue(job)
    assert "time is up: requeued for the cases that are missing" in output(tmp_path, job)
    assert statuses(run_folder(tmp_path, job))["arena.c2"] == "missing"
    go_on(tmp_path, job)
    assert_complete_with_no_case_run_twice(tmp_path, job, before)


def assert_goes_on_after(interruption, tmp_path):
    job = submit_stuck(tmp_path)
    before = results_of(run_folder(tmp_path, job), FINISHED)
    interruption(job)
    wait_for_requeue(job)
    go_on(tmp_path, job)
    assert_complete_with_no_case_run_twice(tmp_path, job, before)


def test_a_job_that_is_signalled_as_at_its_time_limit_comes_back_and_goes_on(tmp_path):
    assert_goes_on_after(signal_of_the_time_limit, tmp_path)


def test_a_job_that_is_preempted_goes_on_after_the_other(tmp_path):
    def preempt(job):
        urgent = slurm("sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--exclusive", "--output=/dev/null",
                       "--wrap=true")
        assert wait_for_end(urgent) == 0
    assert_goes_on_after(preempt, tmp_path)


def test_a_job_that_slurm_requeues_without_a_warning_goes_on(tmp_path):
    assert_goes_on_after(lambda job: slurm("scontrol", "requeue", job), tmp_path)  # as when a node fails


def test_a_job_that_is_requeued_before_it_measured_anything_begins_again(tmp_path):
    job = submit(tmp_path, "--", "--begin=now+1hour")
    run = run_folder(tmp_path, job)
    (run / "cases").mkdir(parents=True)  # what a node that died at the wrong moment leaves: a folder without run.json
    slurm("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert wait_for_end(job) == 2
    assert "never overwrites" in output(tmp_path, job)
    slurm("scontrol", "requeue", job)
    wait_for_requeue(job)
    go_on(tmp_path, job)
    assert wait_for_end(job) == 0, output(tmp_path, job)
    assert statuses(run.with_name(run.name + ".1")) == ALL_PASSED


def test_the_runs_of_an_array_become_one_run_of_all_its_ranks(tmp_path):
    job = submit(tmp_path, "--array", "0-1", nodes=1)
    wait_until(lambda: slurm("squeue", "-h", "--job", job, check=False).stdout == "", PATIENCE)
    runs = [run_folder(tmp_path, f"{job}_{task}") for task in (0, 1)]
    for task, run in enumerate(runs):
        assert statuses(run) == ALL_PASSED and len(ranks_of(run)) == 2
        assert "4/4" in output(tmp_path, f"{job}_{task}")
    done = plateau("merge", *runs, "-o", tmp_path / "fleet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert statuses(tmp_path / "fleet") == ALL_PASSED
    assert [r["rank"] for r in ranks_of(tmp_path / "fleet")] == [0, 1, 2, 3]
