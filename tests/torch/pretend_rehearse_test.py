# SPDX-License-Identifier: Apache-2.0
"""A GPU that is not here: plateau rehearse, and plateau compile for it. Nothing is preloaded by hand."""
import json
import pathlib
import subprocess
import zipfile

import h5py
import pytest

from plateau_test import BIN, PLATEAU, environment, plateau, results, statuses, summary

ROOT = pathlib.Path(__file__).parents[2]
JOBS = ROOT / "jobs"
JOB = {
    "hidden": 64, "batch": 2, "seq_len": 8, "warmup": 5, "requests_per_worker": 20, "concurrency_levels": [1, 3],
    "modes": ["eager", "arena"], "soak": {"windows": 8, "requests_per_window": 5},
}
A6000 = "sm=8.6,memory=47.5GiB,sms=84"


def started(folder, *arguments, cache=None, before=(), **variables):
    env = environment(worker=BIN / "plateau-worker", PLATEAU_CACHE=str(cache or folder / "cache"), **variables)
    return subprocess.run([*before, str(PLATEAU), *map(str, arguments)], cwd=folder, env=env, text=True,
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=600)


def write_job(folder, **fields):
    (folder / "job.json").write_text(json.dumps({**JOB, **fields}))
    return folder / "job.json"


def rehearse(folder, gpu, *arguments, job=None, cache=None, variables=(), **fields):
    """Rehearses `job`, or the small one with `fields`, into folder/run; gives the finished process and the run folder."""
    done = started(folder, "rehearse", job or write_job(folder, **fields), "--gpu", gpu, "-o", folder / "run", *arguments,
                   cache=cache, **dict(variables))
    return done, folder / "run"


@pytest.fixture(scope="module")
def on_an_h200(tmp_path_factory):
    done, folder = rehearse(tmp_path_factory.mktemp("h200"), "h200", repeats=3)
    assert done.returncode == 0, done.stderr
    return done, folder


def test_a_rehearsal_passes_on_the_gpu_that_was_named_and_says_so_everywhere(on_an_h200):
    done, folder = on_an_h200
    gpu = "NVIDIA H200 (sm_90, 139.8 GiB, 132 SMs)"
    assert set(statuses(folder).values()) == {"passed"}
    said = summary(folder)
    assert said["rehearsal"]["gpu"] == said["run"]["rehearsed"] == gpu
    assert done.stdout.lstrip().startswith(f"REHEARSAL on {gpu}")
    assert "a rehearsal cannot know:" in done.stdout
    with h5py.File(folder / "run.h5") as file:
        assert file.attrs["rehearsed"] == gpu
    assert f"(rehearsal on {gpu})" in plateau("show", folder, "--format", "junit", cwd=folder).stdout
    assert plateau("show", folder, "--explain", cwd=folder).stdout.startswith("REHEARSAL")
    assert plateau("validate", folder, cwd=folder).returncode == 0


def test_a_rehearsal_tells_no_time(on_an_h200):
    done, folder = on_an_h200
    for result in results(folder).values():
        for one in (result, *result["ranks"]):
            assert all(one[key] is None for key in ("wall_time_sec", "throughput_requests_per_sec", "latency_ms",
                                                    "throughput_tokens_per_sec", "latency_intervals", "harness_ns"))
    assert not any("seconds" in rank for case in summary(folder)["cases"] for rank in case["ranks"])
    assert not any("clock_requests" in rank for result in results(folder).values() for rank in result["ranks"])
    with h5py.File(folder / "run.h5") as file:
        names = []
        file.visit(names.append)
        assert names and not any(name.endswith("_ns") for name in names)
    row = next(line for line in done.stdout.splitlines() if line.startswith("eager.c1")).split()
    assert row[1:5] == ["-", "-", "-", "9"]
    assert not any(line.split()[-1] == "s" for line in done.stderr.splitlines() if "passed" in line)


def test_each_case_is_rehearsed_once_whatever_the_jobs_repeats(on_an_h200):
    assert list(statuses(on_an_h200[1])) == ["eager.c1", "eager.c3", "arena.c1", "arena.c3"]


@pytest.fixture(scope="module")
def of_the_seed(tmp_path_factory):
    """On a generation of GPUs whose workspace is as large as the seed's."""
    done, folder = rehearse(tmp_path_factory.mktemp("seed"), A6000, "--modes", "eager", job=JOBS / "seed_h200.json")
    assert done.returncode == 0, done.stderr
    return results(folder)


def test_the_job_of_the_seed_reserves_what_the_seed_reserved_to_the_byte(of_the_seed):
    seed = json.loads((ROOT / "tests" / "data" / "seed_result.json").read_text())["results"][0]
    before = of_the_seed["eager.c4"]["memory_pre"]
    assert before["reserved_bytes"] == seed["memory_pre"]["reserved_bytes"] == 270532608
    assert before["segment_alloc_events"] == seed["memory_pre"]["segment_alloc_events"] == 19
    lt_workspaces = 4 << 20  # one a stream, which newer torch keeps
    assert before["allocated_bytes"] == seed["memory_pre"]["allocated_bytes"] + lt_workspaces


@pytest.mark.parametrize("case", ["eager.c4", "eager.c8"])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_the_page_about_the_seed_has_the_figures_that_a_rehearsal_gives(of_the_seed, case, when):
    page = (ROOT / "docs" / "seed.md").read_text().splitlines()
    row = next(line for line in page if line.startswith(f"| {case} | {when} |"))
    memory = of_the_seed[case][f"memory_{when}"]
    ours = [cell.strip().removesuffix(" = ours").split("; ours ")[-1] for cell in row.split("|")[3:7]]
    assert ours == [f"{memory[key]:,}" for key in ("reserved_bytes", "segment_alloc_events", "allocated_bytes",
                                                   "allocation_events")]


def test_the_concurrency_that_is_said_not_to_fit_does_not(tmp_path):
    gpu = "sm=8.6,memory=1GiB"
    _, folder = rehearse(tmp_path, gpu, modes=["eager"], concurrency_levels=[2, 4], soak={"windows": 0})
    mode = summary(folder)["memory_per_stream"]["modes"][0]
    unfit = mode["would_not_fit"]["concurrency"]
    assert "eager: each stream adds" in mode["told"] and f"c{unfit} would not fit" in mode["told"]
    (tmp_path / "there").mkdir()
    done, folder = rehearse(tmp_path / "there", gpu, modes=["eager"], concurrency_levels=[unfit - 1, unfit],
                            soak={"windows": 0})
    assert done.returncode == 3
    assert statuses(folder) == {f"eager.c{unfit - 1}": "passed", f"eager.c{unfit}": "out_of_memory"}


def test_ranks_under_a_launcher_of_the_users_rehearse_on_a_gpu_each(tmp_path):
    done = started(tmp_path, "rehearse", write_job(tmp_path, modes=["arena"], concurrency_levels=[1]), "--gpu", "t4", "-o",
                   tmp_path / "run", before=("mpirun", "--bind-to", "none", "-n", "2"), CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stderr
    devices = [rank["device"] for rank in summary(tmp_path / "run")["ranks"]]
    assert [d["index"] for d in devices] == [0, 1] and {d["name"] for d in devices} == {"Tesla T4"}


@pytest.mark.parametrize("command, advice", [
    ("rehearse", "only a GPU is rehearsed"), ("compile", "leave out --gpu to compile for this machine's CPU")])
def test_a_job_for_the_cpu_is_refused(tmp_path, command, advice):
    done = started(tmp_path, command, JOBS / "smoke_cpu.json", "--gpu", "h200")
    assert done.returncode == 2
    assert done.stderr.startswith("the job is for the CPU") and "--device cuda" in done.stderr
    assert advice in done.stderr
    assert not (tmp_path / "runs").exists()


def test_multiprocessors_that_nobody_named_are_not_claimed(tmp_path):
    done, folder = rehearse(tmp_path, "sm=8.6,memory=1GiB", modes=["arena"], concurrency_levels=[1])
    assert done.returncode == 0, done.stderr
    assert summary(folder)["rehearsal"]["gpu"] == "a GPU (sm_86, 1 GiB)"
    assert "SMs" not in done.stdout + done.stderr


def test_a_gpu_that_is_not_known_is_refused_with_those_that_are(tmp_path):
    done, folder = rehearse(tmp_path, "h20")
    assert done.returncode == 2 and "did you mean h200?" in done.stderr and not folder.exists()


def test_without_the_pretend_gpu_it_says_where_it_looked(tmp_path):
    done, _ = rehearse(tmp_path, "h200", variables={"PLATEAU_PRETEND_GPU": "/nowhere"})
    assert done.returncode == 2 and "not in /nowhere" in done.stderr


@pytest.fixture(scope="module")
def compiled_ahead(tmp_path_factory):
    """The one package that is compiled here: half a minute. There is no toolkit, and no GPU."""
    folder = tmp_path_factory.mktemp("compiled")
    job = write_job(folder, modes=["eager", "compiled", "compiled_aten"])
    done = started(folder, "compile", job, "--gpu", "h200")
    assert done.returncode == 0, done.stderr
    return done, folder / "cache"


NO_COMPILER = {"PLATEAU_PYTHON": "/no/python"}


def test_a_package_is_compiled_ahead_for_a_gpu_that_is_elsewhere(compiled_ahead):
    done, cache = compiled_ahead
    package, = cache.glob("*.pt2")
    first, second = done.stdout.split("compiled_aten: ")
    assert first.startswith(f"compiled: {package}\n") and " s on " in first
    assert "for sm_90, 132 SMs; compiled in" in first
    assert "ahead of time, for a pretended NVIDIA H200, with torch 2." in first
    assert json.loads(package.with_suffix(".json").read_text())["package"]["for_rehearsal"] is False
    assert second.startswith(f"{package}\n") and "was in the cache" in second, "the same options by another name"


def test_it_is_said_to_be_compiled_only_when_it_is(compiled_ahead, tmp_path):
    done, cache = compiled_ahead
    assert done.stderr == "compiled: not in the cache; compiling for NVIDIA H200\n"
    again = started(tmp_path, "compile", write_job(tmp_path, modes=["compiled"]), "--gpu", "h200", cache=cache)
    assert again.returncode == 0 and "was in the cache" in again.stdout and again.stderr == ""


def test_it_holds_machine_code_for_that_gpu(compiled_ahead):
    """Each kernel is an ELF file, which has its compute capability in bits 8 to 15 of e_flags."""
    with zipfile.ZipFile(next(compiled_ahead[1].glob("*.pt2"))) as package:
        kernels = [package.read(name) for name in package.namelist() if name.endswith(".cubin")]
    assert kernels and all(kernel.startswith(b"\x7fELF") and kernel[49] == 90 for kernel in kernels)


def test_its_host_code_runs_on_other_cpus_than_the_one_that_compiled_it(compiled_ahead, tmp_path):
    with zipfile.ZipFile(next(compiled_ahead[1].glob("*.pt2"))) as package:
        libraries = [package.extract(name, tmp_path) for name in package.namelist() if name.endswith(".so")]
    assert libraries
    for library in libraries:
        code = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True, timeout=60).stdout
        assert "<main" in code or ".text" in code
        assert "%ymm" not in code and "%zmm" not in code


def test_such_a_package_is_found_where_the_gpu_is_and_makes_six_events_a_request(compiled_ahead, tmp_path):
    done, folder = rehearse(tmp_path, "h200", cache=compiled_ahead[1], modes=["compiled"], variables=NO_COMPILER)
    assert done.returncode == 0, done.stderr
    for result in results(folder).values():
        package = result["ranks"][0]["package"]
        assert package["from_cache"] and package["compiled_by"] == "pretend GPU" and package["host"]
        assert package["architecture"] == "sm_90, 132 SMs" and package["compiled_on"] == "NVIDIA H200"
        assert result["compile_applied"] and result["churn"]["allocation_events_per_request"] == 6
    assert "ahead of time, for a pretended NVIDIA H200 (sm_90, 132 SMs)" in plateau(
        "show", folder, "--explain", cwd=folder).stdout


@pytest.mark.parametrize("gpu", ["a100", "sm=9.0,memory=139GiB,sms=114"])
def test_it_is_not_used_on_another_architecture(compiled_ahead, tmp_path, gpu):
    done, folder = rehearse(tmp_path, gpu, cache=compiled_ahead[1], modes=["compiled"], concurrency_levels=[1],
                            variables=NO_COMPILER)
    case, = summary(folder)["cases"]
    assert case["status"] == "skipped" and "/no/python" in case["reason"]


def test_to_compile_ahead_the_multiprocessors_have_to_be_known(tmp_path):
    done = started(tmp_path, "compile", write_job(tmp_path, modes=["compiled"]), "--gpu", "sm=9.0,memory=139GiB")
    assert done.returncode == 2 and ",sms=132" in done.stderr


def test_a_job_without_a_compiled_mode_has_nothing_to_compile(tmp_path):
    done = started(tmp_path, "compile", write_job(tmp_path), "--gpu", "h200")
    assert done.returncode == 2 and "nothing to compile" in done.stderr


def test_what_cannot_be_compiled_is_said_for_each_mode(tmp_path):
    done = started(tmp_path, "compile", write_job(tmp_path, modes=["compiled", "compiled_aten"]), "--gpu", "h200", **NO_COMPILER)
    assert done.returncode == 3
    assert done.stderr.count("/no/python") == 2 and done.stdout == ""
