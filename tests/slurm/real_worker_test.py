# SPDX-License-Identifier: Apache-2.0
"""From a job file to a finished report on 2 nodes x 2 ranks, with the real worker."""
from plateau_test import BIN, assert_attribution_adds_up, plateau, summary
from slurm_cluster import ALL_PASSED, needs_cluster, output, run_folder, statuses, submit, wait_for_end

pytestmark = needs_cluster


def test_a_submitted_job_is_measured_and_reported(tmp_path):
    job = submit(tmp_path, "--cpus-per-task", "2", "--fail-on", "none", worker=BIN / "plateau-worker",
                 timeouts_s={"compile": 120, "prepare": 120, "stall": 120, "collective": 120})
    assert wait_for_end(job, 300) == 0, output(tmp_path, job)
    run = run_folder(tmp_path, job)
    assert statuses(run) == ALL_PASSED
    eager = next(r for r in summary(run)["results"] if r["case_id"] == "eager.c2")
    assert eager["total_requests"] == 4 * 2 * 20 and len(eager["ranks"]) == 4
    assert_attribution_adds_up(run)
    shown = plateau("show", run, "--explain", cwd=tmp_path)
    assert shown.returncode == 0 and "addmm" in shown.stdout, shown.stdout
