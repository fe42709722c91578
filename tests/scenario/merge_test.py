# SPDX-License-Identifier: Apache-2.0
"""plateau merge: several runs into one, judged anew; the parts of one run that its nodes kept, joined again."""
import json
import os
import shutil
import signal
import subprocess

import h5py
import pytest

from plateau_test import (ALL, PLATEAU, another_disk_at, command_line, environment, kill, needs_mounts, plateau,
                          processes_naming, run, statuses, summary, wait_until, write_job)


def a_run(tmp_path, where, *arguments, **more):
    """A run of two ranks in tmp_path/<where>/run."""
    (tmp_path / where).mkdir()
    done, folder = run(tmp_path / where, "-n", "2", *arguments, **more)
    assert done.returncode in (0, 3, 4), done.stderr
    return folder


def merge(tmp_path, *runs, to="merged"):
    done = plateau("merge", *runs, "-o", to, cwd=tmp_path)
    return done, tmp_path / to


def run_id(folder):
    return json.loads((folder / "run.json").read_text())["run_id"]


def in_order(*folders):
    """As merge has them: by start, which is known to the second, then by id."""
    return sorted(folders, key=lambda folder: (json.loads((folder / "run.json").read_text())["started"], run_id(folder)))


def raw_results(folder):
    return sorted(str(p.relative_to(folder / "cases")) for p in folder.rglob("*.cbor"))


def test_two_runs_become_one_whose_ranks_say_where_they_come_from(tmp_path):
    a, b = a_run(tmp_path, "a"), a_run(tmp_path, "b")
    done, merged = merge(tmp_path, a, b)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "merged" and "4/4" in done.stdout
    assert statuses(merged) == {case: "passed" for case in ALL}
    found = summary(merged)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 1, 2, 3]
    assert {rank["host"] for rank in found["ranks"]} == {os.uname().nodename}
    origins = [(rank["origin"]["run_id"], rank["origin"]["rank"]) for rank in found["ranks"]]
    assert sorted(origins) == sorted([(run_id(folder), rank) for folder in (a, b) for rank in (0, 1)])
    eager = next(r for r in found["results"] if r["case_id"] == "eager.c2")
    assert eager["total_requests"] == 4 * 2 * 20 and eager["ranks_measured"] == 4
    assert eager["across_ranks"]["start_skew_ns"] == max(
        next(r for r in summary(each)["results"] if r["case_id"] == "eager.c2")["across_ranks"]["start_skew_ns"]
        for each in (a, b)), "gates of different runs are not compared"
    with h5py.File(merged / "run.h5") as file:
        assert file["eager.c2"]["rank"][:].tolist() == [0, 1, 2, 3] and file.attrs["complete"] == 1
    assert plateau("validate", "merged", cwd=tmp_path).returncode == 0
    shown = plateau("show", "merged", "--format", "junit", cwd=tmp_path)
    assert shown.returncode == 0 and "eager.c2" in shown.stdout


def test_the_order_on_the_command_line_does_not_matter(tmp_path):
    runs = [a_run(tmp_path, name) for name in "abc"]
    _, one = merge(tmp_path, *runs, to="one")
    _, other = merge(tmp_path, *reversed(runs), to="other")
    assert summary(one)["ranks"] == summary(other)["ranks"] and summary(one)["results"] == summary(other)["results"]


def test_a_rank_that_is_slow_among_all_runs_is_found_by_none_of_them_alone(tmp_path):
    fields = {"requests_per_worker": 400, "modes": ["eager"], "concurrency_levels": [1]}
    healthy = [a_run(tmp_path, name, **fields) for name in "ab"]
    slow = a_run(tmp_path, "slow", script=[{"do": "slow_latency", "factor": 2}], **fields)
    assert all(f["check"] != "straggler" for each in (*healthy, slow) for f in summary(each)["findings"])
    _, merged = merge(tmp_path, *healthy, slow)
    found, = (f for f in summary(merged)["findings"] if f["check"] == "straggler")
    assert {summary(merged)["ranks"][rank]["origin"]["run_id"] for rank in found["ranks"]} == {run_id(slow)}


def test_a_gpu_that_is_in_several_runs_is_kept_apart_by_run(tmp_path):
    fields = {"device": "cuda", "fabric": "off"}
    alone = a_run(tmp_path, "a", **fields)
    _, merged = merge(tmp_path, alone, a_run(tmp_path, "b", **fields))
    assert [rank["device"]["uuid"] for rank in summary(merged)["ranks"]] == ["GPU-0", "GPU-1"] * 2
    capacity = [{mode["capacity_bytes"] for mode in summary(each)["memory_per_stream"]["modes"]} for each in (alone, merged)]
    assert capacity[0] == capacity[1], "nothing is taken for a device that two ranks share"


def test_a_merged_run_is_merged_again_and_each_rank_keeps_its_first_origin(tmp_path):
    a, b, c = (a_run(tmp_path, name) for name in "abc")
    _, two = merge(tmp_path, a, b, to="two")
    done, three = merge(tmp_path, two, c, to="three")
    assert done.returncode == 0, done.stderr
    found = summary(three)
    assert {r["origin"]["run_id"] for r in found["ranks"]} == {run_id(each) for each in (a, b, c)}
    assert len(found["ranks"]) == 6 and len(raw_results(three)) == 6 * len(ALL)
    assert sorted(source["first_rank"] for source in found["run"]["merged_from"]) == [0, 2, 4]
    for source in found["run"]["merged_from"]:
        for rank in found["ranks"][source["first_rank"]:source["first_rank"] + source["ranks"]]:
            assert rank["origin"]["run_id"] == source["run_id"]


def test_a_merged_run_cannot_be_resumed(tmp_path):
    _, merged = merge(tmp_path, a_run(tmp_path, "a"), a_run(tmp_path, "b"))
    done = plateau("run", "--resume", "merged", cwd=tmp_path)
    assert done.returncode == 2 and "was merged from several runs and cannot be resumed" in done.stderr


def test_what_is_missing_in_a_run_is_missing_in_the_merged_one(tmp_path):
    a, b = a_run(tmp_path, "a"), a_run(tmp_path, "b")
    shutil.rmtree(b / "cases" / "arena.c2")
    (a / "cases" / "eager.c1" / "rank-00001.cbor").write_bytes(b"damaged")
    done, merged = merge(tmp_path, a, b)
    assert done.returncode == 75, done.stderr
    assert "eager.c1/rank-00001.cbor: is truncated" in done.stderr and "it is left out" in done.stderr
    assert "--resume" not in done.stdout
    missing = {m["case_id"]: [summary(merged)["ranks"][r]["origin"] for r in m["ranks"]] for m in summary(merged)["missing"]}
    assert missing == {"eager.c1": [{"run_id": run_id(a), "rank": 1}],
                       "arena.c2": [{"run_id": run_id(b), "rank": 0}, {"run_id": run_id(b), "rank": 1}]}
    assert plateau("validate", "merged", cwd=tmp_path).returncode == 0


def test_runs_of_different_jobs_are_refused_with_all_that_differs(tmp_path):
    a, b = a_run(tmp_path, "a"), a_run(tmp_path, "b", hidden=32, soak={"windows": 4, "requests_per_window": 10})
    done, merged = merge(tmp_path, a, b)
    assert done.returncode == 2, done.stderr
    first, second = in_order(a, b)
    values = [(16, 32), (3, 4)] if first == a else [(32, 16), (4, 3)]
    assert done.stderr.splitlines()[1:] == [f"/{field}: {x} in {first}, {y} in {second}"
                                            for field, (x, y) in zip(("hidden", "soak/windows"), values)]
    assert not merged.exists()


def test_runs_may_differ_in_what_changes_no_measurement(tmp_path):
    a, b = a_run(tmp_path, "a"), a_run(tmp_path, "b", random_seed=7, name="another")
    done, merged = merge(tmp_path, b, a)
    assert done.returncode == 0, done.stderr
    first, second = in_order(a, b)
    assert f"/random_seed: {0 if first == a else 7} in {first}, {7 if first == a else 0} in {second}" in done.stderr
    assert summary(merged)["meta"]["name"] == ("job" if first == a else "another")


def test_gates_of_all_runs_are_gates_of_the_merged_one(tmp_path):
    a, b = a_run(tmp_path, "a", "--fail-on", "straggler"), a_run(tmp_path, "b", "--fail-on", "churn")
    done, merged = merge(tmp_path, a, b)
    assert set(summary(merged)["run"]["fail_on"]["checks"]) >= {"straggler", "churn"}
    assert done.returncode == 4 and "gate failed" in done.stdout, "the eager cases have churn"


def test_a_run_without_gates_makes_those_of_another_no_stricter(tmp_path):
    held_to_the_default, held_to_nothing = a_run(tmp_path, "a"), a_run(tmp_path, "b", "--fail-on", "none")
    done, merged = merge(tmp_path, held_to_the_default, held_to_nothing)
    assert done.returncode == 0 and "gate failed" not in done.stdout, "growth cannot be told of so short a soak"
    assert summary(merged)["run"]["fail_on"] == {"checks": ["growing"], "strict": False}


def test_what_the_tasks_of_an_array_printed_beside_their_runs_is_passed_over(tmp_path):
    for task in (0, 1):
        a_run(tmp_path, f"task{task}").rename(tmp_path / f"job-17_{task}")
        (tmp_path / f"job-17_{task}.out").write_text("printed\n")
    done, merged = merge(tmp_path, *sorted(tmp_path.glob("job-17_*")))
    assert done.returncode == 0 and "note: passed over 2 output files\n" in done.stderr, done.stderr
    assert len(summary(merged)["ranks"]) == 4
    done, other = merge(tmp_path, *tmp_path.glob("job-17_*.out"), to="other")
    assert done.returncode == 2 and "is an output file" in done.stderr and not other.exists(), done.stderr


@pytest.mark.parametrize("twice", ["a/run", "a/../a/run", "link", "a/run/summary.json"])
def test_a_run_that_is_given_twice_is_refused(tmp_path, twice):
    a_run(tmp_path, "a")
    (tmp_path / "link").symlink_to("a/run")
    done, merged = merge(tmp_path, "a/run", twice)
    assert done.returncode == 2 and "is given twice" in done.stderr, done.stderr
    assert not merged.exists()


def test_a_run_beside_a_merged_one_that_holds_it_is_refused(tmp_path):
    a, b = a_run(tmp_path, "a"), a_run(tmp_path, "b")
    _, merged = merge(tmp_path, a, b)
    done, _ = merge(tmp_path, merged, b, to="more")
    assert done.returncode == 2 and f"holds run {run_id(b)}, and so does" in done.stderr, done.stderr


def test_nothing_is_merged_into_a_folder_that_has_something_in_it(tmp_path):
    a = a_run(tmp_path, "a")
    done, _ = merge(tmp_path, a, to="a/run")
    assert done.returncode == 2 and "never overwrites" in done.stderr, done.stderr


def broken_off(tmp_path, name):
    """A run of which the first attempt has eager.c1 alone."""
    (tmp_path / name).mkdir()
    folder = tmp_path / name / "run"
    running = subprocess.Popen([str(PLATEAU), "run", str(write_job(tmp_path / name)), "-n", "2", "-o", "run", "--grace", "0"],
                               cwd=tmp_path / name, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=environment([{"case": "eager.c2", "at": "timed", "do": "slow", "seconds": 60}]))
    wait_until(lambda: all((folder / "cases" / "eager.c1" / f"rank-0000{r}.cbor").exists() for r in (0, 1)))
    kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 75, err
    return folder


def test_runs_that_were_resumed_are_merged_whole_and_keep_their_attempts(tmp_path):
    a = broken_off(tmp_path, "a")
    moved = environment([{"do": "device", "rank": 1, "name": "another"}])
    assert plateau("run", "--resume", a, "--allow-moved", cwd=tmp_path, env=moved).returncode == 0
    b = a_run(tmp_path, "b")
    done, merged = merge(tmp_path, b, a)
    assert done.returncode == 0, done.stderr
    assert statuses(merged) == {case: "passed" for case in ALL}
    is_of_a = [rank["origin"]["run_id"] == run_id(a) for rank in summary(merged)["ranks"]]
    for case in summary(merged)["cases"]:
        later = case["case_id"] != "eager.c1"
        assert [rank["attempt"] for rank in case["ranks"]] == [2 if of_a and later else 1 for of_a in is_of_a]
    note, = summary(merged)["run"]["moved"]
    assert note["run_id"] == run_id(a) and note["cases"] == ["eager.c1"] and "rank 1: " in note["what"]
    assert f"not comparable in {run_id(a)}: eager.c1 (attempt 1)" in done.stdout


def parts_of(folder, tmp_path):
    """The run as two nodes without a common file system would have kept it."""
    parts = []
    for rank in (0, 1):
        part = tmp_path / f"node{rank}"
        shutil.copytree(folder, part)
        for other in part.rglob(f"rank-0000{1 - rank}.*cbor"):
            other.unlink()
        parts.append(part)
    return parts


def test_parts_of_one_run_are_joined_by_rank(tmp_path):
    whole = a_run(tmp_path, "a")
    done, joined = merge(tmp_path, *reversed(parts_of(whole, tmp_path)))
    assert done.returncode == 0, done.stderr
    assert run_id(joined) == run_id(whole) and raw_results(joined) == raw_results(whole)
    assert summary(joined)["results"] == summary(whole)["results"] and "merged_from" not in summary(joined)["run"]
    assert plateau("run", "--resume", joined, cwd=tmp_path, env=environment() | {"PATH": "/nowhere"}).returncode == 0


def test_parts_that_both_hold_a_result_have_it_once_and_one_of_them_may_be_damaged(tmp_path):
    whole = a_run(tmp_path, "a")
    shutil.copytree(whole, tmp_path / "copy")
    (whole / "cases" / "eager.c1" / "rank-00000.cbor").write_bytes(b"damaged")
    (tmp_path / "copy" / "cases" / "eager.c1" / "rank-00001.cbor").unlink()
    done, joined = merge(tmp_path, whole, "copy")
    assert done.returncode == 0, done.stderr
    assert len(summary(joined)["ranks"]) == 2 and len(raw_results(joined)) == 2 * len(ALL)


def test_parts_that_have_seen_different_attempts_are_joined_without_mixing_them(tmp_path):
    folder = broken_off(tmp_path, "a")
    early = tmp_path / "early"
    shutil.copytree(folder, early)
    assert plateau("run", "--resume", folder, cwd=tmp_path).returncode == 0
    done, joined = merge(tmp_path, early, folder)
    assert done.returncode == 0, done.stderr
    assert len(summary(joined)["run"]["attempts"]) == 2
    assert [{rank["attempt"] for rank in case["ranks"]} for case in summary(joined)["cases"]] == [{1}, {2}, {2}, {2}]


def test_copies_of_a_run_that_were_resumed_apart_are_not_joined(tmp_path):
    folder = broken_off(tmp_path, "a")
    shutil.copytree(folder, tmp_path / "copy")
    for each in (folder, "copy"):
        assert plateau("run", "--resume", each, cwd=tmp_path).returncode == 0
    done, joined = merge(tmp_path, folder, "copy")
    assert done.returncode == 2 and "are copies of one run that went on apart: attempt 2" in done.stderr, done.stderr
    assert not joined.exists()


def test_a_part_and_another_run_are_merged_too(tmp_path):
    whole, other = a_run(tmp_path, "a"), a_run(tmp_path, "b")
    done, merged = merge(tmp_path, *parts_of(whole, tmp_path), other)
    assert done.returncode == 0, done.stderr
    assert len(summary(merged)["ranks"]) == 4 and len(raw_results(merged)) == 4 * len(ALL)


def test_folders_of_one_run_that_contradict_each_other_are_refused(tmp_path):
    whole = a_run(tmp_path, "a")
    (tmp_path / "two").mkdir()
    shutil.copy(whole / "run.json", tmp_path / "two")
    (tmp_path / "two" / "run.json").write_text((whole / "run.json").read_text().replace('"hidden": 16', '"hidden": 17'))
    done, _ = merge(tmp_path, whole, "two")
    assert done.returncode == 2 and "damaged or edited" in done.stderr, done.stderr


@needs_mounts
def test_what_another_node_holds_is_a_run_when_rank_0s_node_is_lost(tmp_path):
    with another_disk_at(tmp_path / "own") as elsewhere:
        command = [str(PLATEAU), "run", str(write_job(tmp_path, timeouts_s={"stall": 60, "collective": 10})), "-o",
                   f"{tmp_path}/own/run"]
        running = subprocess.Popen(["mpirun", "--bind-to", "none", "--host", "localhost:2", "-n", "1", *command, ":", "-n", "1",
                                    *elsewhere, *command], cwd=tmp_path, text=True, stdin=subprocess.DEVNULL,
                                   env=environment([{"case": "arena.c1", "rank": 0, "at": "timed", "do": "hang"}]),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        there = f"{tmp_path}/own/run/cases/arena.c1/rank-00001.cbor"
        wait_until(lambda: subprocess.run([*elsewhere, "test", "-e", there]).returncode == 0, 60)
        own = [pid for pid in processes_naming(str(tmp_path)) if command_line(pid)[0] == os.fsencode(PLATEAU)]
        for pid in own:
            kill(pid)
        running.communicate(timeout=60)
        subprocess.run([*elsewhere, "cp", "-r", f"{tmp_path}/own/run", f"{tmp_path}/kept"], check=True)

    assert raw_results(tmp_path / "kept") == [f"{case}/rank-00001.cbor" for case in ("arena.c1", "eager.c1", "eager.c2")]
    done, alone = merge(tmp_path, "kept", to="alone")
    assert done.returncode == 75, done.stderr
    assert {m["case_id"]: m["ranks"] for m in summary(alone)["missing"]}["eager.c1"] == [0]
    done, joined = merge(tmp_path, "kept", "own/run", to="joined")
    assert done.returncode == 75, done.stderr
    assert statuses(joined) == {case: "passed" if case in ("eager.c1", "eager.c2") else "missing" for case in ALL}
    assert plateau("run", "--resume", "joined", cwd=tmp_path).returncode == 0
    assert statuses(joined) == {case: "passed" for case in ALL}
