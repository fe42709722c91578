# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks named, or all, and prints their figures; exits with 1 when one misses its bound.

run.py BUILD [NAME...]; script/bench calls it.
"""
import json
import os
import pathlib
import statistics
import sys
import tempfile

from scale import gather_and_assemble, judge, many_cases, on_disk, per_case, resident, slurm
from support import Figure, Programs, in_turn, median_ratio, run, seconds, SOURCE
from verdicts import soak_cost, soundness

THREADS = 4


def python_threads(programs):
    """The same model, eager, at concurrency 4, beside PyTorch in four Python threads."""
    # so many requests that both take seconds: at the end of a short run a core may be idle
    for hidden, batch, seq_len, here, there, bound in ((64, 1, 1, 100_000, 10_000, 10), (256, 8, 64, 100, 100, 1)):
        shape = dict(hidden=hidden, batch=batch, seq_len=seq_len)
        job = dict(shape, device="cpu", dtype="float32", modes=["eager"], concurrency_levels=[THREADS],
                   requests_per_worker=here, soak={"windows": 0})

        def ours():
            with tempfile.TemporaryDirectory() as folder:
                return programs.run_job(pathlib.Path(folder), job)["results"][0]["throughput_requests_per_sec"]

        def theirs():
            return float(run([sys.executable, SOURCE / "bench" / "python_threads.py", hidden, batch, seq_len, THREADS,
                              there]))

        rounds = 7
        plateau, python = in_turn(rounds, ours, theirs)
        yield Figure(f"requests per second beside Python threads, {json.dumps(shape)}", median_ratio(plateau, python),
                     "times", f"plateau {statistics.median(plateau):.0f}/s, Python {statistics.median(python):.0f}/s, "
                     f"{rounds} pairs", at_least=bound)


def harness(programs):
    """The timed loop's own cost per request."""
    cost = json.loads(run([programs.bench("harness_cost")]))
    yield Figure("the harness's own cost of a request beside two clock reads and a store", cost["ratio"], "times",
                 f"{cost['harness_ns']:.1f} ns, bare {cost['bare_ns']:.1f} ns, 101 pairs", at_most=1.15)


def allocator(programs):
    """A pair of allocations, 4 MiB and 8 KiB, and their frees, beside PyTorch's CUDA caching allocator."""
    if not programs.bench("allocator_pair").exists():
        print("allocator: not measured: this build has no CUDA parts to compare with")
        return
    pretend = programs.build / "pretend_gpu"
    report = json.loads(run([programs.bench("allocator_pair"), "--benchmark_format=json", "--benchmark_repetitions=9",
                             "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.1"],
                            LD_LIBRARY_PATH=str(pretend), LD_PRELOAD=str(pretend / "libpretend_cuda.so")))
    times = {}
    for entry in report["benchmarks"]:
        if entry["run_type"] == "iteration":
            allocator_name = entry["name"].split("/")[0]
            times.setdefault((allocator_name, entry["threads"]), []).append(1e9 / entry["items_per_second"])
    for threads in (1, 2, 4):
        ours, theirs = (statistics.median(times[name, threads]) for name in ("plateau_cpu", "pytorch_cuda"))
        yield Figure(f"pairs of allocations per second beside libc10_cuda's, {threads} threads", theirs / ours, "times",
                     f"ours {ours:.0f} ns, theirs {theirs:.0f} ns a pair, medians of 9", at_least=1)


def start(programs):
    """From typing plateau to the prompt."""
    job = dict(workload="noop", device="cpu", modes=["eager"], concurrency_levels=[1], warmup=1, requests_per_worker=10,
               soak={"windows": 0})

    def plateau_run():
        with tempfile.TemporaryDirectory() as folder:
            return seconds(lambda: programs.run_job(pathlib.Path(folder), job, "-n", "2"))

    def least():
        return (seconds(lambda: run(["mpirun", "--bind-to", "none", "--host", "localhost:2", "-n", "2", "true"])) +
                seconds(lambda: run([programs.bench("load_torch")])))

    ours, bare = in_turn(9, plateau_run, least)
    yield Figure("a run of one noop case on 2 ranks, longer than mpirun and loading Torch",
                 statistics.median(a - b for a, b in zip(ours, bare)), "s",
                 f"{statistics.median(ours):.2f} s, those {statistics.median(bare):.2f} s, 9 pairs", at_most=1.5)
    help_text, = in_turn(21, lambda: 1000 * seconds(lambda: run([programs.plateau, "--help"])))
    yield Figure("plateau --help", statistics.median(help_text), "ms", "median of 21", at_most=50)


BENCHMARKS = {f.__name__: f for f in (resident, judge, python_threads, harness, allocator, start, gather_and_assemble,
                                      on_disk, per_case, slurm, many_cases, soak_cost, soundness)}  # resident and judge see the largest child so far


def main(build, *names):
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"bench: {unknown[0]}: no such benchmark; there are {', '.join(BENCHMARKS)}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    missed = False
    for name in (name for name in BENCHMARKS if not names or name in names):
        for figure in BENCHMARKS[name](Programs(build)):
            print(f"{name}: {figure.line()}", flush=True)
            missed |= figure.verdict() == "NOT OK"
    return 1 if missed else 0


sys.exit(main(*sys.argv[1:]))
