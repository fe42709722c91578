# SPDX-License-Identifier: Apache-2.0
"""A thousand cases in one run: what the ranks and the front end hold does not grow with the cases that are done."""
import collections
import os
import statistics
import subprocess
import time

from plateau_test import PLATEAU, command_line, environment, processes_naming, statuses, write_job

CASES = 1000
FLAT = 512  # KiB: the last tenth of the run may hold so much more than the second tenth
RESULTS = 128 * 1024  # KiB: summary.json of a thousand cases is 11 MB of text, and is held whole where it is made and shown


def role_of(pid):
    """'front end', 'rank 0', 'rank 1'; nothing for the launcher and the workers."""
    words = command_line(pid)
    if not words[0].endswith(b"/plateau"):
        return None
    if b"--as-rank" not in words:
        return "front end"
    entries = open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
    return "rank " + next(e.split(b"=")[1].decode() for e in entries if e.startswith(b"OMPI_COMM_WORLD_RANK="))


def held_by(pid):
    """Resident KiB and descriptors."""
    with open(f"/proc/{pid}/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def watch(running, tmp_path):
    """Per role: (cases done, resident KiB, descriptors), several times a second until the run has ended."""
    samples = collections.defaultdict(list)
    pids = {}
    while running.poll() is None:
        if len(pids) < 3:
            pids.update({role: pid for pid in processes_naming(str(tmp_path)) if (role := role_of(pid))})
        cases = tmp_path / "run" / "cases"
        done = len(os.listdir(cases)) if cases.exists() else 0
        for role, pid in pids.items():
            try:
                samples[role].append((done, *held_by(pid)))
            except (OSError, StopIteration):
                pass  # it is ending
        time.sleep(0.05)
    return samples


def held_while(seen, first, last):
    """The median of the resident KiB, and all numbers of descriptors, while the number of cases done was in this range."""
    part = [(resident, files) for done, resident, files in seen if first <= done < last]
    assert len(part) > 5, "too few samples"
    return round(statistics.median(resident for resident, _ in part)), {files for _, files in part}


def test_a_thousand_cases_leave_memory_and_descriptors_flat(tmp_path):
    job = write_job(tmp_path, workload="noop", repeats=CASES, modes=["eager"], concurrency_levels=[1],
                    requests_per_worker=20, timeouts_s={"compile": 20, "prepare": 20, "stall": 20, "collective": 60})
    with open(tmp_path / "err", "w") as err:
        running = subprocess.Popen([str(PLATEAU), "run", str(job), "-n", "2", "-o", "run"], cwd=tmp_path, text=True,
                                   env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        samples = watch(running, tmp_path)
    assert running.returncode == 0, (tmp_path / "err").read_text()[-2000:]
    assert list(statuses(tmp_path / "run").values()) == ["passed"] * CASES

    assert set(samples) == {"front end", "rank 0", "rank 1"}
    for role, seen in samples.items():
        early, early_files = held_while(seen, CASES // 10, CASES // 5)
        late, late_files = held_while(seen, CASES * 9 // 10, CASES)
        peak = max(resident for _, resident, _ in seen)
        print(f"{role}: {early} KiB, then {late} KiB, at most {peak} KiB; descriptors {sorted(early_files)}, then {sorted(late_files)}")
        assert late - early <= FLAT, f"{role}: {early} KiB resident in the second tenth, {late} KiB in the last"
        # within a case the number goes up and down by a few; what is never closed lifts its lowest by hundreds
        assert min(late_files) <= max(early_files), f"{role}: {early_files} descriptors early, {late_files} late"
        assert peak - late <= RESULTS, f"{role}: {late} KiB before the results are made, {peak} KiB at most"
    assert sum(log.stat().st_size for log in (tmp_path / "run" / "logs").iterdir()) == 0
