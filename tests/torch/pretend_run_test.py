# SPDX-License-Identifier: Apache-2.0
"""The same job on CUDA: plateau run on two MPI ranks with the real worker, each rank with a pretend GPU of its own."""
import json
import subprocess

import pytest

from plateau_test import assert_attribution_adds_up, BIN, PLATEAU, environment, plateau, results, statuses, summary

PRETEND_GPU = BIN.parent / "pretend_gpu"
SMALL = {"modes": ["arena"], "concurrency_levels": [1]}
JOB = {
    "device": "cuda", "hidden": 64, "batch": 2, "seq_len": 8, "warmup": 5, "requests_per_worker": 20,
    "concurrency_levels": [1, 3], "modes": ["eager", "arena_graph", "arena_planned"],
    "soak": {"windows": 8, "requests_per_window": 5},
}


def started(folder, *arguments, gpu=(), cache=None):
    """plateau in `folder` with the settings of `gpu` (worker/pretend_gpu/README.md)."""
    env = environment(worker=BIN / "plateau-worker", PLATEAU_CACHE=str(cache or folder / "cache"), TMPDIR=str(folder),
                      LD_LIBRARY_PATH=str(PRETEND_GPU), LD_PRELOAD=str(PRETEND_GPU / "libpretend_cuda.so"),
                      **{"PRETEND_DEVICES": "2", "PRETEND_SMS": "132", "PRETEND_CLOCKS": "1", **dict(gpu)})
    return subprocess.run([str(PLATEAU), *map(str, arguments)], cwd=folder, env=env, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=600)


def run(folder, *arguments, gpu=(), cache=None, **fields):
    job = folder / "job.json"
    job.write_text(json.dumps({**JOB, **fields}))
    return started(folder, "run", job, "-o", folder / "run", *arguments, gpu=gpu, cache=cache), folder / "run"


@pytest.fixture(scope="module")
def main_run(tmp_path_factory):
    """The one run here that compiles a package: half a minute."""
    done, folder = run(tmp_path_factory.mktemp("main"), "-n", "2", modes=[*JOB["modes"], "compiled"])
    assert done.returncode == 0, done.stderr
    return folder


def test_every_case_passes_on_both_ranks_each_with_its_own_device(main_run):
    assert set(statuses(main_run).values()) == {"passed"} and len(statuses(main_run)) == 8
    devices = [rank["device"] for rank in summary(main_run)["ranks"]]
    assert [d["index"] for d in devices] == [0, 1] and len({d["uuid"] for d in devices}) == 2
    assert all(d["kind"] == "cuda" and d["pretended"] for d in devices)


EVENTS = [("eager", 9), ("compiled", 6), ("arena_graph", 0), ("arena_planned", 0)]


@pytest.mark.parametrize("mode,events", EVENTS)
def test_each_mode_makes_its_events_per_request(main_run, mode, events):
    for c in ("c1", "c3"):
        result = results(main_run)[f"{mode}.{c}"]
        assert result["allocation_event_delta"] == events * result["total_requests"]
        assert result["churn"]["allocation_events_per_request"] == events
        assert result["segment_alloc_event_delta"] == 0 and result["memory_stable"] is (events == 0)


def test_all_modes_hold_the_workspaces_of_their_streams_once(main_run):
    found = results(main_run)
    segments = {case: found[case]["ranks"][0]["memory_pre"]["segment_alloc_events"] for case in found}
    assert segments["compiled.c3"] == segments["eager.c3"] == segments["arena_planned.c3"]


def test_the_attributions_parts_add_up_to_the_counters_delta(main_run):
    assert_attribution_adds_up(main_run)


def test_the_package_was_compiled_once_and_really_ran(main_run):
    ranks = [r for c in ("c1", "c3") for r in results(main_run)[f"compiled.{c}"]["ranks"]]
    assert all(r["compile_applied"] for r in ranks)
    assert len({r["package"]["key"] for r in ranks}) == 1
    assert [r["package"]["from_cache"] for r in ranks].count(False) == 1
    assert {r["package"]["compiled_by"] for r in ranks} == {"pretend GPU"}
    assert {r["package"]["architecture"] for r in ranks} == {"sm_90, 132 SMs"}
    about, = (main_run.parent / "cache").glob("*.json")
    assert json.loads(about.read_text())["package"]["for_rehearsal"] is True, "no real GPU will run it"


def test_a_run_that_meets_a_pretend_gpu_is_a_rehearsal_by_whatever_name(main_run):
    assert summary(main_run)["run"]["rehearsed"].startswith("pretend GPU (sm_90, ")
    assert all(result["latency_ms"] is None for result in results(main_run).values())


@pytest.mark.parametrize("devices", [1, 8])
def test_the_same_grid_passes_in_one_worker_a_rank_whatever_the_number_of_devices(main_run, tmp_path, devices):
    done, folder = run(tmp_path, "-n", str(min(devices, 2)), gpu={"PRETEND_DEVICES": str(devices)}, isolation="run",
                       cache=main_run.parent / "cache", modes=[mode for mode, _ in EVENTS])
    assert done.returncode == 0, done.stderr
    assert set(statuses(folder).values()) == {"passed"} and len(statuses(folder)) == 8
    ranks = summary(folder)["ranks"]
    assert [rank["device"]["index"] for rank in ranks] == list(range(len(ranks)))
    assert {rank["device"]["visible_devices"] for rank in ranks} == {devices}
    for mode, events in EVENTS:
        for c in ("c1", "c3"):
            assert results(folder)[f"{mode}.{c}"]["churn"]["allocation_events_per_request"] == events


def test_outputs_are_not_claimed_to_be_right(main_run):
    for result in results(main_run).values():
        assert result["output_check"]["checked"] is False and "pretend GPU" in result["output_check"]["why_not"]


def test_memory_reaches_a_plateau_in_all_of_them(main_run):
    assert "PLATEAU in 8 of 8 measured cases" in plateau("show", main_run, cwd=main_run).stdout


def test_a_device_that_fills_up_is_out_of_memory_and_keeps_its_curve(tmp_path):
    done, folder = run(tmp_path, "-n", "1", "--inject", "leak:bytes=67108864,every=1,case=eager.c1", gpu={"PRETEND_MIB": "1024"},
                       modes=["eager", "arena"], concurrency_levels=[1], requests_per_worker=2)
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {"eager.c1": "out_of_memory", "arena.c1": "passed"}
    case = next(c for c in summary(folder)["cases"] if c["case_id"] == "eager.c1")
    assert "CUDA out of memory. Tried to allocate 64.00 MiB" in case["reason"]
    live = case["ranks"][0]["soak"]["allocated_bytes"]
    assert len(live) >= 2 and all(more - less == 5 * 64 << 20 for less, more in zip(live, live[1:]))


def test_memory_that_is_planted_to_run_out_is_told_in_torchs_words_with_the_curve_until_then(tmp_path):
    """After the 20 timed requests and the first window of 5, in the second."""
    done, folder = run(tmp_path, "-n", "1", "--inject", "oom:case=eager.c1,after=27", modes=["eager", "arena"],
                       concurrency_levels=[1])
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {"eager.c1": "out_of_memory", "arena.c1": "passed"}
    case = next(c for c in summary(folder)["cases"] if c["case_id"] == "eager.c1")
    assert "CUDA out of memory. Tried to allocate 280.00 GiB" in case["reason"]
    assert case["ranks"][0]["soak"]["requests"] == [0, 5]
    assert results(folder)["arena.c1"]["arena_kind"] == "graph"


def test_a_broken_device_costs_its_case_and_the_next_has_a_new_worker(tmp_path):
    done, folder = run(tmp_path, "-n", "1", "--inject", "device_error:case=eager.c3", gpu={"PRETEND_BREAKS_AT": "indexSelect"},
                       modes=["eager"], concurrency_levels=[3, 1], requests_per_worker=4, soak={"windows": 0})
    assert done.returncode == 3, done.stderr
    assert statuses(folder) == {"eager.c3": "crashed", "eager.c1": "passed"}
    assert "illegal memory access" in next(c for c in summary(folder)["cases"] if c["case_id"] == "eager.c3")["reason"]


def test_more_ranks_than_devices_are_refused_with_the_devices_named(tmp_path):
    done, _ = run(tmp_path, "-n", "3")
    assert done.returncode != 0
    assert "3 ranks" in done.stderr and "2 CUDA devices" in done.stderr and "GPU-" in done.stderr


def test_one_visible_device_is_taken_whatever_the_local_rank(tmp_path):
    done, folder = run(tmp_path, "-n", "1", gpu={"PRETEND_DEVICES": "8", "CUDA_VISIBLE_DEVICES": "5"}, **SMALL)
    assert done.returncode == 0, done.stderr
    device = summary(folder)["ranks"][0]["device"]
    assert (device["index"], device["visible_list"], device["pci_bus_id"]) == (0, "5", "0000:06:00.0")


@pytest.mark.parametrize("devices", ["1", "2", "8"])
def test_two_ranks_that_see_the_same_one_device_are_refused_and_leave_no_folder(tmp_path, devices):
    done, folder = run(tmp_path, "-n", "2", gpu={"PRETEND_DEVICES": devices, "CUDA_VISIBLE_DEVICES": "0"}, **SMALL)
    assert done.returncode == 2, done.stderr
    for part in ("ranks 0-1 on ", " have the same GPU GPU-", "rank 0: CUDA_VISIBLE_DEVICES=0, rank 1: CUDA_VISIBLE_DEVICES=0",
                 "--allow-shared-gpu"):
        assert part in done.stderr, done.stderr
    assert not folder.exists()


def test_ranks_may_share_a_device_when_told_so_and_the_run_says_that_it_cannot_be_compared(tmp_path):
    done, folder = run(tmp_path, "-n", "2", "--allow-shared-gpu", gpu={"PRETEND_DEVICES": "1"}, **SMALL)
    assert done.returncode == 0, done.stderr
    why = summary(folder)["run"]["not_comparable"]
    assert "ranks 0-1 on " in why and "CUDA_VISIBLE_DEVICES is not set" in why
    assert json.loads((folder / "run.json").read_text())["not_comparable"] == why
    assert f"not comparable  {why}" in plateau("show", folder, cwd=folder).stdout
    assert f"WARNING: not comparable: {why}" in done.stderr


def test_the_selftest_goes_on_where_its_ranks_share_a_device(tmp_path):
    """No time is known here, so that some faults are not caught; what needs none is judged as anywhere."""
    done = started(tmp_path, "selftest", gpu={"PRETEND_DEVICES": "1"})
    assert done.returncode == 4, done.stderr
    said = done.stdout.splitlines()
    for planted in ("nothing", "leak:every=5", "leak:every=400,after=360", "crash", "oom"):
        assert any(line.startswith(f"ok     planted {planted}:") for line in said), done.stdout


def test_a_selftest_whose_ranks_cannot_run_says_why(tmp_path):
    done = started(tmp_path, "selftest", "-n", "3")
    assert done.returncode == 2 and "gave no result; it said: " in done.stderr, done.stderr
    assert "3 ranks" in done.stderr and "2 CUDA devices" in done.stderr


def test_what_is_around_a_gpu_is_recorded_and_warned_of_with_its_rank(tmp_path):
    done, folder = run(tmp_path, "-n", "2", gpu={"PRETEND_NVML": "foreign@1,held_down@1"}, **SMALL)
    assert done.returncode == 0, done.stderr
    first, second = results(folder)["arena.c1"]["ranks"]
    assert first["gpu"]["before"]["sm_clock_mhz"] == 1980 and first["gpu"]["after_soak"]["other_processes"] == []
    assert first["gpu"]["held_down_in_window"]["power"] == 0 and second["gpu"]["held_down_in_window"]["power"] > 0.3
    assert [p["pid"] for p in second["gpu"]["after"]["other_processes"]] == [4242, 4343]
    warned = [w for w in plateau("show", folder, cwd=folder).stdout.splitlines() if w.startswith("warning")]
    assert warned == ["warning  arena.c1, rank 1: other processes had memory on the GPU: pid 4242 (2 GiB), pid 4343",
                      "warning  arena.c1, rank 1: the GPU's clocks were held down in the timed window by: power"]


def test_without_nvml_a_run_says_so_and_has_no_figures_of_it(main_run):
    for rank in summary(main_run)["ranks"]:
        assert rank["device"]["sensors_unavailable"] and "mig" not in rank["device"]
    assert all("gpu" not in rank for result in results(main_run).values() for rank in result["ranks"])


def test_the_clocks_are_kept_up_before_each_gate(main_run):
    kept = [rank["clock_requests"] for result in results(main_run).values() for rank in result["ranks"]]
    assert len(kept) == 16 and sum(kept) > 0


def test_ranks_that_kept_their_clocks_up_for_different_times_are_not_called_unequal(main_run):
    assert [f for f in summary(main_run)["findings"] if f["check"] == "unequal"] == []
