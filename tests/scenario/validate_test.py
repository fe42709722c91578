# SPDX-License-Identifier: Apache-2.0
"""plateau validate and show on a run that was made by plateau and then went through other hands."""
import json
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

import h5py
import pytest
import xarray as xr

from plateau_test import PLATEAU, plateau

FILES = ["run.json", "summary.json", "run.h5", "cases/eager.c2/rank-00000.cbor"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("validate") / "run"
    subprocess.run([Path(os.environ["PLATEAU_TEST_BIN"]) / "readers_make_run", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "run"))


def validate(path):
    return plateau("validate", path, cwd=path.parent)


def refused(done, *sentences):
    """Exit code 2, nothing on stdout, one sentence for each thing that is wrong."""
    assert done.returncode == 2 and done.stdout == "", done
    lines = done.stderr.splitlines()
    assert len(lines) == len(sentences), done.stderr
    for sentence in sentences:
        assert any(sentence in line for line in lines), done.stderr


def test_a_run_folder_is_whole(folder):
    done = validate(folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{folder}: a run of 3 ranks, 17 of 18 results there, all whole\n"


@pytest.mark.parametrize("file, says", [
    ("run.json", "what was known of a run at its start: 3 ranks, 6 cases"),
    ("summary.json", "a whole summary, of 6 cases"),
    ("run.h5", "a whole run.h5"),
    ("cases/eager.c2/rank-00000.cbor", "a whole raw result: rank 0 of eager.c2, passed")])
def test_each_file_is_said_what_it_is(folder, file, says):
    done = validate(folder / file)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder / file}: {says}\n", "")


@pytest.mark.parametrize("file", FILES)
def test_a_file_cut_short_is_refused_alone_and_in_its_folder(folder, file):
    os.truncate(folder / file, (folder / file).stat().st_size // 2)
    refused(validate(folder / file), f"{folder / file}: ")
    refused(validate(folder), f"{folder / file}: ")


def test_a_run_file_damaged_anywhere_never_reaches_hdf5(folder):
    """HDF5 1.10 crashes on some of these."""
    whole = (folder / "run.h5").read_bytes()
    random.seed(3)
    for _ in range(100):
        changed = bytearray(whole)
        for _ in range(random.choice([1, 8, 100])):
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        (folder / "run.h5").write_bytes(changed)
        refused(validate(folder / "run.h5"), "run.h5: is ")


def test_a_run_file_that_another_program_wrote_into_is_unchecked(folder):
    with h5py.File(folder / "run.h5", "r+") as file:
        file.attrs["note"] = "mine"
    done = validate(folder / "run.h5")
    assert done.returncode == 0 and "an HDF5 file, unchecked" in done.stdout
    assert "plateau assemble writes it anew" in done.stderr
    assert plateau("assemble", folder, cwd=folder).returncode == 75, "rank 1 of eager.c3 is missing"
    assert validate(folder / "run.h5").stderr == ""


def vouch_for(path):
    """Gives what another program wrote the trailer that plateau would."""
    content = path.read_bytes()
    path.write_bytes(content + b"PLRF" + struct.pack("<IQ", crc32c(content), len(content)))


def crc32c(content):
    crc = 0xFFFFFFFF
    for byte in content:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def table():
    for entry in range(256):
        for _ in range(8):
            entry = (entry >> 1) ^ (0x82F63B78 if entry & 1 else 0)
        yield entry


TABLE = list(table())


def test_a_run_file_that_lacks_something_is_told_what(folder):
    with h5py.File(folder / "run.h5", "r+") as file:
        del file["eager.c2/latency_ns"]
        del file["arena.c2"]
    vouch_for(folder / "run.h5")
    refused(validate(folder), "run.h5: eager.c2/latency_ns is missing", "run.h5: the group arena.c2 is missing")


def test_the_trailer_does_not_disturb_other_readers(folder):
    before = (folder / "run.h5").read_bytes()
    assert before[-16:-12] == b"PLRF"
    for engine in ("h5netcdf", "netcdf4"):
        with xr.open_dataset(folder / "run.h5", group="eager.c2", engine=engine) as data:
            data.load()
    for tool in (["ncdump", "-h"], ["h5dump", "-H"], ["h5ls", "-r"]):
        shown = subprocess.run([*tool, folder / "run.h5"], capture_output=True, text=True)
        assert (shown.returncode, shown.stderr) == (0, "")
    assert (folder / "run.h5").read_bytes() == before


def test_show_refuses_what_validate_refuses(folder):
    summary = folder / "summary.json"
    text = summary.read_text()
    for changed in (text[:-100], text.replace("plateau.summary/1", "plateau.summary/2", 1), text.replace("eager", "eagle"),
                    json.dumps({**json.loads(text), "status": "ok!"}), "{}"):
        summary.write_text(changed)
        shown = plateau("show", folder, cwd=folder)
        assert shown.returncode == 2 and shown.stdout == ""
        refused(validate(summary), shown.stderr.strip())


def test_what_is_not_there_is_said(tmp_path):
    refused(validate(tmp_path / "absent"), "absent: cannot be read: No such file or directory")
    refused(validate(tmp_path), "is neither a run folder nor in one: there is no run.json")


@pytest.mark.parametrize("command", ["validate", "show"])
def test_output_that_cannot_be_written_is_an_error(folder, command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PLATEAU, command, folder], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "cannot write to the standard output" in done.stderr


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_job_from_a_pipe_is_refused(tmp_path, command):
    done = subprocess.run([PLATEAU, command, "/dev/stdin"], input="{}", capture_output=True, text=True, cwd=tmp_path)
    refused(done, "is a pipe or a device, which can be read only once; save it as a file first")
