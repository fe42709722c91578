# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: what a figure is, running programs, and medians of what is measured in turn."""
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).parents[1]


@dataclasses.dataclass
class Figure:
    """A measured number, what it has to reach, and what it was made of."""
    what: str
    value: float
    unit: str
    made_of: str
    at_least: float | None = None
    at_most: float | None = None

    def verdict(self):
        if self.at_least is None and self.at_most is None:
            return "for information"
        low = self.at_least is not None and self.value < self.at_least
        high = self.at_most is not None and self.value > self.at_most
        return "NOT OK" if low or high else "ok"

    def line(self):
        bound = f"at least {self.at_least:g}, " if self.at_least is not None else ""
        bound += f"at most {self.at_most:g}, " if self.at_most is not None else ""
        return f"{self.what}: {self.value:.3g} {self.unit} ({bound}{self.verdict()}); {self.made_of}"


class Programs:
    """The programs of one build folder."""

    def __init__(self, build):
        self.build = pathlib.Path(build).resolve()
        self.plateau = self.build / "bin" / "plateau"
        self.fake_worker = self.build / "tests" / "fake_worker"

    def bench(self, name):
        return self.build / "bench" / name

    def run_job(self, folder, job, *arguments, worker=None):
        """Runs a job into folder/run, which is new; gives its summary."""
        (folder / "job.json").write_text(json.dumps(job))
        more = {"PLATEAU_WORKER": str(worker)} if worker else {}
        run([self.plateau, "run", "job.json", "-o", "run", *arguments], cwd=folder, **more)
        return json.loads((folder / "run" / "summary.json").read_text())


def run(command, cwd=None, **variables):
    """The standard output of a program that has to succeed."""
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **variables)
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, text=True, stdin=subprocess.DEVNULL,
                          capture_output=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(map(str, command))} exited with {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def seconds(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def in_turn(rounds, *measurements):
    """Calls each in turn, `rounds` times over, so that all meet the same machine; the results of each."""
    results = [[] for _ in measurements]
    for _ in range(rounds):
        for measure, into in zip(measurements, results):
            into.append(measure())
    return results


def median_ratio(over, under):
    return statistics.median(a / b for a, b in zip(over, under))


def write_durably(path, size):
    """A plain write and fsync of as many bytes."""
    block = memoryview(os.urandom(min(size, 1 << 24)))
    with open(path, "wb", buffering=0) as file:
        for at in range(0, size, len(block)):
            file.write(block[:size - at])
        os.fsync(file.fileno())
    path.unlink()
