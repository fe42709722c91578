# SPDX-License-Identifier: Apache-2.0
"""Many ranks: what plateau itself does beside and after the measuring. The workers make their numbers up."""
import json
import os
import pathlib
import resource
import shutil
import statistics
import sys
import tempfile

from support import SOURCE, Figure, in_turn, median_ratio, run, seconds, write_durably

RANKS, REQUESTS, BYTES_PER_REQUEST = 32, 100_000, 16
MPIRUN = ("mpirun", "--bind-to", "none", "--host")


def new_folder(**where):
    return tempfile.TemporaryDirectory(prefix="plateau-bench-", **where)


def fake_job(**fields):
    return dict(dict(device="cpu", dtype="float32", modes=["eager"], concurrency_levels=[1], warmup=0,
                     soak={"windows": 3, "requests_per_window": 10}), **fields)


def road_to_results(programs, medium, bound=None, **where):
    """From 32 ranks' results of two cases to run.h5 and summary.json."""
    def rate_of(*command):
        with new_folder(**where) as folder:
            took = json.loads(run([folder if word == "FOLDER" else word for word in command]))
            return took["bytes"] / took["seconds"] / 1e6

    def gather():
        return rate_of(*MPIRUN, f"localhost:{RANKS}", "-n", RANKS, programs.bench("gather"), "FOLDER", REQUESTS)

    def assemble():
        return rate_of(programs.bench("assemble"), "FOLDER", RANKS, 2, REQUESTS)

    def plain():
        size = RANKS * 2 * REQUESTS * BYTES_PER_REQUEST
        with new_folder(**where) as folder:
            return size / seconds(lambda: write_durably(pathlib.Path(folder) / "plain", size)) / 1e6

    rates = in_turn(5, gather, assemble, plain)
    both = statistics.median(1 / (1 / g + 1 / a) for g, a, _ in zip(*rates))
    each = [statistics.median(rate) for rate in rates]
    yield Figure(f"gather and assemble of raw samples, {medium}", both, "MB/s",
                 f"gather {each[0]:.0f}, assemble {each[1]:.0f}, a plain write and fsync {each[2]:.0f} MB/s, "
                 "medians of 5", at_least=bound)


def gather_and_assemble(programs):
    """In memory, where only our own work counts."""
    return road_to_results(programs, "in memory", bound=200, dir="/dev/shm")


def on_disk(programs):
    """On this machine's disk, which has to take each byte twice."""
    return road_to_results(programs, "on this disk")


def resident(programs):
    """What the largest process of a run with 32 ranks takes: rank 0, or another, or a worker."""
    with new_folder() as folder:
        job = fake_job(repeats=2, requests_per_worker=REQUESTS)
        programs.run_job(pathlib.Path(folder), job, "-n", RANKS, worker=programs.fake_worker)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Figure("the largest process of a run of 32 ranks", largest, "MB resident", "one run", at_most=300)


def per_case(programs):
    """What a case takes when measuring takes nothing: the difference of runs of many cases and of few."""
    few, many = 2, 12
    for ranks in (2, 4, 8, 16, 32):
        def run_of(cases):
            with new_folder() as folder:
                job = fake_job(repeats=cases, requests_per_worker=1000)
                return seconds(lambda: programs.run_job(pathlib.Path(folder), job, "-n", ranks,
                                                        worker=programs.fake_worker))

        def plain():
            with new_folder() as folder:
                return seconds(lambda: write_durably(pathlib.Path(folder) / "plain", ranks * 1000 * BYTES_PER_REQUEST))

        long, short, bare = in_turn(3, lambda: run_of(many), lambda: run_of(few), plain)
        yield Figure(f"a case on {ranks} ranks, its fake workers' start included",
                     1000 * statistics.median((a - b) / (many - few) for a, b in zip(long, short)), "ms",
                     f"a plain write and fsync of its samples {1000 * statistics.median(bare):.1f} ms, 3 rounds")


def slurm(programs):
    """What a case takes beyond its measuring, on 16 ranks of 2 nodes of a Slurm on this machine, beside the same by mpirun."""
    if os.geteuid() != 0 or not shutil.which("slurmctld", path=os.environ["PATH"] + ":/usr/sbin"):
        return
    ranks, few, many = 16, 2, 24

    def run_of(cases, launcher, **variables):
        with new_folder() as folder:
            (pathlib.Path(folder) / "job.json").write_text(json.dumps(fake_job(repeats=cases, requests_per_worker=1000)))
            return seconds(lambda: run([*launcher, programs.plateau, "run", "job.json", "-o", "run", "-n", ranks],
                                       cwd=folder, PLATEAU_WORKER=str(programs.fake_worker), **variables))

    with new_folder() as folder:
        cluster, link = SOURCE / "tests" / "slurm" / "cluster.sh", pathlib.Path(folder) / "cluster"
        run([cluster, "up", link])
        try:
            salloc = dict(launcher=["salloc", "-Q", "-N2", "--ntasks-per-node=8"], SLURM_CONF=str(link / "slurm.conf"))
            times = in_turn(3, lambda: run_of(many, **salloc), lambda: run_of(few, **salloc),
                            lambda: run_of(many, []), lambda: run_of(few, []))
        finally:
            run([cluster, "down", link])
    by_slurm, by_mpirun = ([1000 * (a - b) / (many - few) for a, b in zip(*pair)] for pair in (times[:2], times[2:]))
    yield Figure("a case on 16 ranks under Slurm, 2 nodes, beside the same under mpirun", median_ratio(by_slurm, by_mpirun),
                 "times as long", f"{statistics.median(by_slurm):.0f} ms and {statistics.median(by_mpirun):.0f} ms, fake "
                 "workers' start included, medians of 3 rounds", at_most=2)


def many_cases(programs):
    """A large run's results, assembled."""
    ranks, cases, requests = 64, 24, 1000
    def assemble():
        with new_folder() as folder:
            return json.loads(run([programs.bench("assemble"), folder + "/run", ranks, cases, requests]))["seconds"]

    times, = in_turn(3, assemble)
    yield Figure(f"assembling {ranks} ranks x {cases} cases x {requests} requests", statistics.median(times), "s",
                 f"{ranks * cases * requests * BYTES_PER_REQUEST / 1e6:.0f} MB of samples, median of 3")


def judge(programs):
    """From the samples of a large run to its verdicts; and its exact percentiles beside numpy's."""
    ours, theirs, judging = [], [], []
    for _ in range(3):
        with new_folder(dir="/dev/shm") as folder:
            samples = pathlib.Path(folder) / "samples"
            took = json.loads(run([programs.bench("judge"), 64, 24, 100_000, samples]))
            numpy_took, p99 = json.loads(run([sys.executable, "-c", NUMPY_PERCENTILES, samples]))
        assert abs(p99 - took["p99"]) < 0.01, "both found the same"
        ours.append(took["percentiles"]), theirs.append(numpy_took), judging.append(took["judging"])
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    yield Figure("judging 64 ranks x 24 cases x 100,000 requests", statistics.median(judging), "s", "median of 3",
                 at_most=10)
    yield Figure("the largest process so far, the made-up samples included", largest, "MB", "", at_most=1000)
    yield Figure("exact percentiles of 6.4 million samples beside numpy's", median_ratio(theirs, ours), "times as fast",
                 f"ours {statistics.median(ours):.2f} s, numpy {statistics.median(theirs):.2f} s, 3 pairs", at_least=1)


NUMPY_PERCENTILES = """
import json, sys, time, numpy
samples = numpy.fromfile(sys.argv[1], "<i8")
began = time.perf_counter()
p50, p95, p99, p99_9 = numpy.percentile(samples, [50, 95, 99, 99.9])
print(json.dumps([time.perf_counter() - began, p99]))
"""
