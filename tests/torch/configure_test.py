# SPDX-License-Identifier: Apache-2.0
"""Configuring against the torch wheels there are: with CUDA, and one without its CUDA libraries."""
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SITE = pathlib.Path(sysconfig.get_path("purelib"))


def configure(folder, python, *arguments):
    """CMake's words and the targets that it made, with no CUDA toolkit to be found."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CUDA")}
    env["PATH"] = os.pathsep.join(p for p in env["PATH"].split(os.pathsep) if not (pathlib.Path(p) / "nvcc").exists())
    done = subprocess.run(["cmake", "-G", "Ninja", "-S", str(SOURCE), "-B", str(folder), f"-DPLATEAU_PYTHON={python}",
                           "-DPLATEAU_BUILD_TESTS=OFF", "-DPLATEAU_HEADERS_ALONE=OFF", *arguments],
                          env=env, text=True, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    targets = subprocess.run(["ninja", "-C", str(folder), "-t", "targets", "all"], text=True, capture_output=True, check=True)
    return done.stdout, targets.stdout


@pytest.fixture
def cpu_wheel(tmp_path):
    """An environment whose torch is this one's, but for what the CPU's wheel lacks."""
    environment = tmp_path / "cpu"
    site = environment / SITE.relative_to(pathlib.Path(sys.prefix))
    libraries = site / "torch" / "lib"
    libraries.mkdir(parents=True)
    (environment / "bin").mkdir()
    shutil.copy(pathlib.Path(sys.prefix) / "pyvenv.cfg", environment)
    python = environment / "bin" / "python"
    python.symlink_to(os.path.realpath(sys.executable))
    (site / "torch" / "include").symlink_to(SITE / "torch" / "include")
    for library in (SITE / "torch" / "lib").iterdir():
        if "cuda" not in library.name and "nvshmem" not in library.name:
            (libraries / library.name).symlink_to(library)
    return python


def test_the_wheel_with_cuda_needs_no_toolkit(tmp_path):
    said, targets = configure(tmp_path / "build", sys.executable)
    assert "for the CPU alone" not in said
    assert "pretend_cuda" in targets and "cuda.cpp.o" in targets
    made = (tmp_path / "build" / "build.ninja").read_text()
    assert "nvcc" not in made and "/usr/local/cuda" not in made


def test_a_wheel_without_cuda_makes_a_worker_for_the_cpu_and_says_so(tmp_path, cpu_wheel):
    said, targets = configure(tmp_path / "build", cpu_wheel)
    assert "has no CUDA: plateau-worker is built for the CPU alone" in said
    assert "pretend_cuda" not in targets and "/cuda.cpp.o" not in targets and "no_cuda.cpp.o" in targets
    assert "nvidia/" not in (tmp_path / "build" / "build.ninja").read_text()


def test_cuda_can_be_left_out(tmp_path):
    said, targets = configure(tmp_path / "build", sys.executable, "-DPLATEAU_CUDA=OFF", "-DPLATEAU_BUILD_BENCH=ON")
    assert "PLATEAU_CUDA is OFF" in said
    assert "no_cuda.cpp.o" in targets and "allocator_pair" not in targets
