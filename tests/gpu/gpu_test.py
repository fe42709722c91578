# SPDX-License-Identifier: Apache-2.0
"""On a real GPU, what the pretend GPU holds in CI, and what it cannot show: that the outputs are right.

Exact on every device: the arenas' 0 events per request. That eager and compiled make the same whole number of events in
each request is exact, too; which number that is (9 and 6 on the pretend GPU) is the device's and its libraries' to say,
and script/gpu-check holds it against a rehearsal's.
"""
import glob
import json
import os
import tempfile

import pytest

from plateau_test import BIN, environment, plateau, results, statuses, summary

JOB = {
    "device": "cuda", "hidden": 256, "batch": 4, "seq_len": 64, "warmup": 10, "requests_per_worker": 100,
    "concurrency_levels": [1, 3], "modes": ["eager", "arena_graph", "arena_planned"],
    "soak": {"windows": 6, "requests_per_window": 20},
}


def why_no_gpu():
    """Nothing when a worker gets a GPU here."""
    with tempfile.TemporaryDirectory() as folder:
        asked = plateau("devices", "--device", "cuda", cwd=folder, env=environment(worker=BIN / "plateau-worker"))
    return "" if asked.returncode == 0 else asked.stderr.strip()


if missing := why_no_gpu():
    # a GPU that is there and that no worker gets is a fault, not a reason to skip
    if os.environ.get("REQUIRE_GPU") == "1" or glob.glob("/dev/nvidia[0-9]*"):
        raise RuntimeError(f"no worker gets a GPU here, and there should be one: {missing}")
    pytest.skip(f"no GPU: {missing}", allow_module_level=True)


def run(folder, *arguments, variables=(), **fields):
    (folder / "job.json").write_text(json.dumps({**JOB, **fields}))
    env = environment(worker=BIN / "plateau-worker", PLATEAU_CACHE=str(folder / "cache"), **dict(variables))
    done = plateau("run", folder / "job.json", "-o", folder / "run", *arguments, cwd=folder, env=env, timeout=150)
    return done, folder / "run"


@pytest.fixture(scope="module")
def main_run(tmp_path_factory):
    done, folder = run(tmp_path_factory.mktemp("main"), "-n", "1")
    assert done.returncode == 0, done.stderr
    return folder


def visible_devices(folder):
    return summary(folder)["ranks"][0]["device"]["visible_devices"]


def assert_whole_numbers_of_events(result):
    events = result["churn"]["allocation_events_per_request"]
    assert isinstance(events, int) and events > 0
    assert result["allocation_event_delta"] == events * result["total_requests"]
    assert result["segment_alloc_event_delta"] == 0


def test_every_case_passes(main_run):
    assert set(statuses(main_run).values()) == {"passed"} and len(statuses(main_run)) == 6


def test_outputs_are_checked_and_right(main_run):
    for result in results(main_run).values():
        check = result["output_check"]
        assert check["checked"] and max(check["relative_l2"], check["relative_max"]) <= check["tolerance"]


def test_the_arenas_allocate_nothing(main_run):
    for case, result in results(main_run).items():
        if case.startswith("arena"):
            assert result["allocation_event_delta"] == 0 and result["memory_stable"] is True, case
            assert result["churn"]["allocation_events_per_request"] == 0, case


def test_eager_makes_the_same_events_in_each_request(main_run):
    for c in ("c1", "c3"):
        assert_whole_numbers_of_events(results(main_run)[f"eager.{c}"])


def test_memory_does_not_grow(main_run):
    assert {r["growth"]["outcome"] for r in results(main_run).values()} <= {"PLATEAU", "INCONCLUSIVE"}


def test_nvml_tells_of_the_gpu_at_each_quiet_point(main_run):
    device = summary(main_run)["ranks"][0]["device"]
    assert "sensors_unavailable" not in device, device
    for result in results(main_run).values():
        gpu = result["ranks"][0]["gpu"]
        for when in ("before", "after", "after_soak"):
            assert gpu[when]["sm_clock_mhz"] > 0 and gpu[when]["power_mw"] > 0 and gpu[when]["temperature_c"] > 0


def test_a_compiled_package_is_made_here_and_runs_with_outputs_that_are_right(tmp_path):
    done, folder = run(tmp_path, "-n", "1", modes=["compiled"])
    assert done.returncode == 0, done.stderr
    for result in results(folder).values():
        assert result["compile_applied"] and result["output_check"]["checked"]
        assert_whole_numbers_of_events(result)


def reason_of_the_one_case_that_is_lost(tmp_path, fault, status):
    """The run goes on after the fault in its first case, in the same worker or a new one."""
    done, folder = run(tmp_path, "-n", "1", "--inject", f"{fault}:case=eager.c1", isolation="run")
    assert done.returncode == 3, done.stderr
    assert statuses(folder)["eager.c1"] == status
    assert list(statuses(folder).values()).count("passed") == 5
    return next(c["reason"] for c in summary(folder)["cases"] if c["case_id"] == "eager.c1")


def test_out_of_memory_costs_its_case_alone(tmp_path):
    assert "CUDA out of memory. Tried to allocate" in reason_of_the_one_case_that_is_lost(tmp_path, "oom", "out_of_memory")


def test_a_device_error_that_stays_costs_its_case_alone(tmp_path):
    reason = reason_of_the_one_case_that_is_lost(tmp_path, "device_error", "crashed")
    assert "CUDA error" in reason and "the device is lost to this worker process" in reason


def test_more_streams_than_torch_has_of_its_own(tmp_path):
    done, folder = run(tmp_path, "-n", "1", concurrency_levels=[40])
    assert done.returncode == 0, done.stderr
    assert_whole_numbers_of_events(results(folder)["eager.c40"])
    assert results(folder)["arena_graph.c40"]["allocation_event_delta"] == 0


def test_fresh_threads(tmp_path):
    done, folder = run(tmp_path, "-n", "1", stream_threads="fresh", soak={"windows": 0})
    assert done.returncode == 0, done.stderr
    assert set(statuses(folder).values()) == {"passed"}


def test_two_ranks_on_one_device_are_refused(tmp_path):
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    done, folder = run(tmp_path, "-n", "2", variables={"CUDA_VISIBLE_DEVICES": first})
    assert done.returncode == 2 and "have the same GPU" in done.stderr, done.stderr
    assert not folder.exists()


def test_two_gpus_can_work_together(tmp_path, main_run):
    if visible_devices(main_run) < 2:
        pytest.skip("one GPU alone")
    done, folder = run(tmp_path, "-n", "2", "--fabric", "check", modes=["eager"])
    assert done.returncode == 0, done.stderr
    assert summary(folder)["fabric"]["status"] == "passed"
    assert len({rank["device"]["uuid"] for rank in summary(folder)["ranks"]}) == 2
