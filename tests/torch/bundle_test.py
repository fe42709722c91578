# SPDX-License-Identifier: Apache-2.0
"""The bundle: small, whole, and running from any folder with the Torch that it is told of."""
import os
import pathlib
import subprocess
import sysconfig
import tarfile

import pytest

from plateau_test import BIN, statuses, summary

SCRIPT = pathlib.Path(__file__).parents[2] / "script" / "bundle"
TORCH = pathlib.Path(sysconfig.get_path("purelib")) / "torch"
OF_EVERY_LINUX = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libresolv.so", "libutil.so",
                  "ld-linux-x86-64.so", "linux-vdso.so")
OF_TORCH = ("libtorch", "libc10", "libcudart.so", "libcublasLt.so", "libnccl.so")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    file = tmp_path_factory.mktemp("made") / "plateau.tar.gz"
    subprocess.run([SCRIPT, file], check=True, env={**os.environ, "BUILD": str(BIN.parent)}, stdout=subprocess.DEVNULL)
    assert file.stat().st_size <= 40 << 20
    elsewhere = tmp_path_factory.mktemp("some where else")
    with tarfile.open(file) as tar:
        tar.extractall(elsewhere)
    return next(elsewhere.iterdir())


def run(bundle, cwd, *arguments, **variables):
    """In an environment without anything of this build's."""
    env = {"HOME": str(cwd), "PATH": "/usr/bin:/bin", "OMPI_ALLOW_RUN_AS_ROOT": "1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PLATEAU_TORCH": str(TORCH), **variables}
    return subprocess.run([bundle / "bin" / "plateau", *arguments], cwd=cwd, env=env, text=True, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=200)


def test_every_library_it_needs_is_in_it_or_on_every_linux_or_torchs(bundle):
    looked_at = 0
    for file in bundle.rglob("*"):
        if file.is_symlink() or not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
            continue
        looked_at += 1
        for line in subprocess.run(["ldd", file], text=True, capture_output=True).stdout.splitlines():
            name, _, rest = line.strip().partition(" => ")
            name = pathlib.Path(name.split()[0]).name
            if not name.startswith(OF_EVERY_LINUX + OF_TORCH):
                assert rest.startswith(str(bundle)), f"{file.relative_to(bundle)} needs {line.strip()}"
    assert looked_at > 50


def test_runs_a_job_on_two_ranks(bundle, tmp_path):
    done = run(bundle, tmp_path, "run", str(bundle / "jobs" / "noop.json"), "-n", "2", "-o", "out",
               "--requests-per-worker", "100", "--concurrency-levels", "1")
    assert done.returncode == 0, done.stderr
    assert statuses(tmp_path / "out") == {"eager.c1": "passed"}
    assert len(summary(tmp_path / "out")["ranks"]) == 2


def test_without_the_right_torch_it_says_which_one_it_needs(bundle, tmp_path):
    done = run(bundle, tmp_path, "devices", PLATEAU_TORCH=str(tmp_path))
    assert done.returncode != 0
    assert "torch 2.11 is needed" in done.stderr + done.stdout and "PLATEAU_TORCH" in done.stderr + done.stdout
