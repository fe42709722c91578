# SPDX-License-Identifier: Apache-2.0
"""The checks of script/gpu-check: check.py BUILD [-o FOLDER] [CHECK...].

A check is a function that gives its line's text; it raises Failed or Skipped to say otherwise. Everything that it runs is in
the log, and is ended at the check's deadline.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WHOLE_SECONDS = 470  # of the eight minutes; the rest is for ending what is late
SMALL_JOB = {"device": "cuda", "warmup": 20, "requests_per_worker": 200, "concurrency_levels": [4],
             "modes": ["eager", "arena_graph", "arena_planned"]}


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Machine:
    """The programs of a build, run one at a time, with a log and a deadline."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.plateau = build / "bin" / "plateau"
        self.log = (folder / "log.txt").open("w")
        self.whole = time.monotonic() + WHOLE_SECONDS
        self.deadline = self.whole

    def begin(self, seconds):
        self.deadline = min(time.monotonic() + seconds, self.whole)

    def run(self, *words, **variables):
        """A program's output (the errors go to the log, too); Failed when it does not end in time."""
        words = [str(word) for word in words]
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **variables)
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Failed("no time was left for it")
        self.log.write(f"\n$ {' '.join(words)}\n")
        self.log.flush()
        child = subprocess.Popen(words, env=env, text=True, cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = child.communicate(timeout=left)
        except subprocess.TimeoutExpired:
            out, err = end(child)
            self.log.write(out + err)
            raise Failed(f"did not end within {left:.0f} s: {pathlib.Path(words[0]).name} {' '.join(words[1:3])}") from None
        self.log.write(out + err)
        self.log.flush()
        return subprocess.CompletedProcess(words, child.returncode, out, err)

    def summary_of(self, name, job, command=("run",), allowed=(0,)):
        """Runs a job, given as fields or as a file, into the folder `name`; gives its summary."""
        if isinstance(job, dict):
            path = self.folder / f"{name}.job.json"
            path.write_text(json.dumps(job, indent=2))
            job = path
        done = self.run(self.plateau, *command, job, "-n", 1, "-o", self.folder / name, "--fail-on", "none")
        if done.returncode not in allowed:
            raise Failed(f"plateau {command[0]} ended with {done.returncode}: {last_line(done.stderr)}")
        return json.loads((self.folder / name / "summary.json").read_text())


def end(child):
    """Politely, so that plateau ends its ranks and workers; then for certain."""
    for sig, patience in ((signal.SIGTERM, 5), (signal.SIGTERM, 5), (signal.SIGKILL, 10)):
        try:
            os.killpg(child.pid, sig)
            return child.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            break
    return "", ""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def seed_job():
    """The seed's job, where this checkout has it; else a small one with the seed's shape."""
    job = SOURCE / "jobs" / "seed_h200.json"
    return job if job.exists() else None


def device(machine):
    """Which GPU a worker gets."""
    told = machine.run(machine.plateau, "devices", "--device", "cuda")
    if told.returncode != 0:
        raise Failed(last_line(told.stderr))
    lines = told.stdout.splitlines()
    driver = [line.strip() for line in lines if line.split()[0] in ("driver", "cuda_driver")]
    return ", ".join([lines[0].removeprefix("local rank 0: "), *driver])


def tests(machine):
    """The tests labelled gpu."""
    done = machine.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfEs",
                       SOURCE / "tests" / "gpu" / "gpu_test.py", REQUIRE_GPU="1", PLATEAU_BIN=str(machine.build / "bin"),
                       PLATEAU_TEST_BIN=str(machine.build / "tests"), PYTHONPATH=str(SOURCE / "tests" / "support"),
                       PYTHONDONTWRITEBYTECODE="1")
    verdict = last_line(done.stdout)
    if done.returncode != 0:
        broken = re.findall(r"^(?:FAILED|ERROR) \S*::(\S+)", done.stdout, re.M)
        raise Failed(verdict + (": " + ", ".join(broken) if broken else ""))
    return verdict


def seed(machine):
    """The seed's job."""
    job = seed_job()
    if job is None:
        raise Skipped("this checkout has no jobs/seed_h200.json")
    measured = machine.summary_of("seed", job)["results"]
    return "; ".join(f"{r['case_id']} p50 {r['latency_ms']['p50']:.3f} ms, {r['throughput_requests_per_sec']:.0f}/s"
                     for r in measured)


def compiled(machine):
    """A package is compiled for this GPU, on it, and gives what eager gives."""
    summary = machine.summary_of("compiled", {**SMALL_JOB, "modes": ["eager", "compiled"], "concurrency_levels": [2]},
                                 allowed=(0, 3))
    case = next(c for c in summary["cases"] if c["mode"] == "compiled")
    if case["status"] != "passed":
        raise Failed(f"{case['status']}: {case['reason']}")
    eager, result = (next(r for r in summary["results"] if r["mode"] == mode) for mode in ("eager", "compiled"))
    if not result["compile_applied"]:
        raise Failed("the package did not run")
    if not result["output_check"]["checked"]:
        raise Failed(f"its outputs were not checked: {result['output_check']['why_not']}")
    return (f"p50 {result['latency_ms']['p50']:.3f} ms, eager {eager['latency_ms']['p50']:.3f} ms; "
            f"{result['churn']['allocation_events_per_request']} events per request")


def gpu_for_rehearsal(summary):
    """As `plateau rehearse --gpu` takes it: by name if it may be in the table, else by what matters."""
    gpu = summary["ranks"][0]["device"]
    name = re.search(r"\b(b200|h200|h100|a100|l40s|l4|a10|t4)\b", gpu["name"].lower())
    return name[1] if name else f"sm={gpu['compute_capability']},memory={gpu['memory_bytes'] >> 30}GiB"


def rehearsal(machine):
    """Bytes and segments of a rehearsal are those of the real run."""
    if "rehearse" not in machine.run(machine.plateau, "--help").stdout:
        raise Skipped("this plateau has no rehearse")
    real = machine.summary_of("real", SMALL_JOB)
    gpu = gpu_for_rehearsal(real)
    rehearsed = machine.summary_of("rehearsed", SMALL_JOB, command=("rehearse", "--gpu", gpu))
    pretended = {r["case_id"]: r for r in rehearsed["results"]}
    wrong = []
    for result in real["results"]:
        case = result["case_id"]
        if case not in pretended:
            wrong.append(f"{case} was not rehearsed")
            continue
        for key in ("allocated_bytes", "reserved_bytes", "segment_alloc_events"):
            here, there = result["memory_pre"][key], pretended[case]["memory_pre"][key]
            if here != there:
                wrong.append(f"{case} {key} {here}, rehearsed {there}")
        here, there = (r["churn"]["allocation_events_per_request"] for r in (result, pretended[case]))
        if here != there:
            wrong.append(f"{case} {here} events per request, rehearsed {there}")
    if wrong:
        raise Failed(f"as {gpu}: " + "; ".join(wrong))
    return f"as {gpu}: the same bytes, segments and events in {len(pretended)} cases"


def overhead(machine):
    """Eager beside the same loop in Python."""
    shape = dict(hidden=1024, batch=16, seq_len=128)
    requests = 1000
    summary = machine.summary_of("overhead", {**SMALL_JOB, **shape, "modes": ["eager"], "concurrency_levels": [1],
                                              "requests_per_worker": requests, "soak": {"windows": 0}})
    result = summary["results"][0]
    done = machine.run(sys.executable, SOURCE / "tests" / "gpu" / "python_loop.py", *shape.values(), requests)
    if done.returncode != 0:
        raise Failed(f"the loop in Python: {last_line(done.stderr)}")
    python = json.loads(last_line(done.stdout))
    p50, harness = result["latency_ms"]["p50"], result["harness_ns"]
    text = (f"eager.c1 p50 {p50:.4f} ms (the harness's own part: {harness:.0f} ns); the loop in Python "
            f"{python['clock_ms']:.4f} ms, by CUDA events {python['events_ms']:.4f} ms")
    if p50 > 1.05 * python["clock_ms"]:
        raise Failed(f"slower than Python by more than a twentieth: {text}")
    return text


CHECKS = {  # each with the seconds that it may take
    "device": (device, 60), "tests": (tests, 240), "seed": (seed, 150), "compiled": (compiled, 120),
    "rehearsal": (rehearsal, 90), "overhead": (overhead, 60)}


def made(machine, name):
    """Makes one check and prints its line; whether it failed."""
    check, seconds = CHECKS[name]
    machine.begin(seconds)
    began = time.monotonic()
    try:
        verdict, text = "ok", check(machine)
    except Skipped as e:
        verdict, text = "skipped", str(e)
    except Failed as e:
        verdict, text = "FAILED", str(e)
    except Exception as e:  # a summary that lacks something, say: the other checks can still be made
        verdict, text = "FAILED", f"{type(e).__name__}: {e}"
    head = f"{verdict}:" if verdict == "skipped" else verdict
    line = f"{name:<10} {head:<8} {text}  [{time.monotonic() - began:.0f} s]"
    print(line, flush=True)
    machine.log.write(f"\n{line}\n")
    return verdict == "FAILED"


def main():
    parser = argparse.ArgumentParser(prog="gpu-check", description="Does all of plateau work on this machine's GPU?")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=pathlib.Path,
                        default=pathlib.Path(time.strftime("gpu-check-%Y%m%dT%H%M%SZ", time.gmtime())))
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(CHECKS))
    asked = parser.parse_intermixed_args()
    if unknown := [name for name in asked.checks if name not in CHECKS]:
        parser.error(f"{unknown[0]}: no such check; there are {', '.join(CHECKS)}")
    if asked.output.exists():
        parser.error(f"{asked.output} is there already; name a new folder with -o")
    asked.output.mkdir(parents=True)
    machine = Machine(asked.build.resolve(), asked.output.resolve())
    machine.begin(CHECKS["device"][1])
    try:
        device(machine)
    except Failed as e:
        machine.log.close()
        print(f"gpu-check: no GPU to check: {e}", file=sys.stderr)
        return 2
    failed = [name for name in asked.checks or CHECKS if made(machine, name)]
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "nothing failed")
    print(f"log and runs: {asked.output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
