# SPDX-License-Identifier: Apache-2.0
"""Whether the verdicts are right on this machine, and whether judging costs what is measured anything."""
import json
import pathlib
import statistics
import subprocess
import tempfile

from support import Figure, in_turn

SMALL = dict(device="cpu", hidden=64, batch=1, seq_len=8, warmup=50, requests_per_worker=200, modes=["eager"],
             concurrency_levels=[2])
SOAK = {"windows": 12, "requests_per_window": 100}


def soundness(programs, runs=50):
    """A leak of one 4 KiB tensor every 50 requests on one rank of three, and the same job without it."""
    def verdict(*arguments):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "job.json").write_text(json.dumps(dict(SMALL, soak=SOAK)))
            done = subprocess.run([programs.plateau, "run", "job.json", "-n", "3", "-o", "run", *arguments], cwd=folder,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            summary = json.loads((pathlib.Path(folder) / "run" / "summary.json").read_text())
            found = [f for f in summary["findings"] if f["check"] == "growing"]
            return done.returncode, summary["results"][0]["growth"]["outcome"], found

    def healthy():
        code, outcome, found = verdict()
        return code == 0 and outcome == "PLATEAU" and not found

    def leaking():
        code, outcome, found = verdict("--inject", "leak:rank=1,bytes=4096,every=50")
        return (code == 4 and outcome == "GROWING" and found[0]["ranks"] == [1] and
                found[0]["evidence"]["op"].startswith("plateau::planted_leak"))

    quiet, caught = in_turn(runs, healthy, leaking)
    yield Figure("runs on 3 ranks without a leak that are PLATEAU", sum(quiet), "runs", f"of {runs}", at_least=runs)
    yield Figure("the same with one 4 KiB tensor kept every 50 requests on rank 1: GROWING, rank and operator named",
                 sum(caught), "runs", f"of {runs}", at_least=runs)


def soak_cost(programs):
    """The timed phase with a soak after it and without."""
    job = dict(SMALL, requests_per_worker=5000)

    def p50_with(soak):
        with tempfile.TemporaryDirectory() as folder:
            return programs.run_job(pathlib.Path(folder), dict(job, soak=soak))["results"][0]["latency_ms"]["p50"]

    on, off = in_turn(9, lambda: p50_with(SOAK), lambda: p50_with({"windows": 0}))
    spread = max(max(on) - min(on), max(off) - min(off))
    yield Figure("the timed median with a soak beside that without, in spreads of the repeats",
                 abs(statistics.median(on) - statistics.median(off)) / spread, "times",
                 f"{statistics.median(on):.4f} and {statistics.median(off):.4f} ms, spread {spread:.4f} ms, 9 pairs", at_most=1)
