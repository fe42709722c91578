# SPDX-License-Identifier: Apache-2.0
"""run.h5 and summary.json, read with the tools that people have: h5py, xarray, ncdump, h5dump, numpy."""
import json
import os
import re
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

ENGINES = ["h5netcdf", "netcdf4"]
CASES = ["eager.c2", "eager.c3", "arena.c2", "arena.c3", "compiled.c2", "compiled.c3"]
MEASURED = {"eager.c2": [0, 1, 2], "eager.c3": [0, 2], "arena.c2": [0, 1, 2], "arena.c3": [0, 1, 2]}
PURE_DIMENSIONS = {"thread", "request"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("readers") / "run"
    subprocess.run([Path(os.environ["PLATEAU_TEST_BIN"]) / "readers_make_run", made], check=True)
    return made


@pytest.fixture(scope="module")
def h5(folder):
    with h5py.File(folder / "run.h5") as file:
        yield file


@pytest.fixture(scope="module")
def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def datasets(group):
    found = []
    group.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None)
    return found


def name_of(dataset):
    return dataset.name.rsplit("/", 1)[1]


def is_pure_dimension(dataset):
    return name_of(dataset) in PURE_DIMENSIONS


# h5py

def test_there_is_one_group_for_each_case_in_the_order_of_the_grid(h5):
    assert [name for name in h5 if isinstance(h5[name], h5py.Group)] == CASES


def test_the_root_says_what_the_file_is(h5, summary):
    assert h5.attrs["schema_name"] == "plateau.run_file"
    assert h5.attrs["schema_version"] == "1.0"
    assert h5.attrs["run_id"] == summary["run"]["run_id"]
    assert h5.attrs["complete"] == 0, "eager.c3 lacks rank 1"
    assert "synthetic" in h5.attrs["title"]


def test_job_and_environment_are_json(h5, summary):
    assert json.loads(h5["job"].asstr()[()]) == summary["meta"]
    assert len(json.loads(h5["run"].asstr()[()])["ranks"]) == 3


def test_every_dataset_says_what_it_is_and_numbers_have_units(h5):
    for dataset in datasets(h5):
        if is_pure_dimension(dataset):
            continue
        assert dataset.attrs["long_name"], dataset.name
        if dataset.dtype.kind in "if":
            assert dataset.attrs["units"] in ("ns", "bytes", "1"), dataset.name


def test_every_dimension_has_a_scale(h5):
    for dataset in datasets(h5):
        if dataset.is_scale:
            continue
        for axis, dimension in enumerate(dataset.dims):
            assert len(dimension) == 1, f"{dataset.name}, dimension {axis}"


def test_pure_dimensions_bear_netcdfs_mark(h5):
    assert h5["eager.c2/thread"].attrs["NAME"].decode() == \
        "This is a netCDF dimension but not a netCDF variable.         2"
    assert h5["eager.c2/request"].id.get_storage_size() == 0


def test_numbers_are_checksummed_and_not_compressed(h5):
    for dataset in datasets(h5):
        if dataset.dtype.kind in "if" and not is_pure_dimension(dataset):
            assert dataset.fletcher32 and dataset.compression is None, dataset.name
    assert h5["eager.c2/latency_ns"].chunks == (1, 1, 20)


def test_strings_are_plain_utf8_and_nothing_is_exotic(h5):
    for dataset in datasets(h5):
        assert dataset.dtype.kind in "ifO", dataset.name
        if dataset.dtype.kind == "O":
            assert h5py.check_string_dtype(dataset.dtype).encoding == "utf-8", dataset.name


def test_a_damaged_sample_is_noticed(folder, tmp_path):
    content = bytearray((folder / "run.h5").read_bytes())
    with h5py.File(folder / "run.h5") as file:
        chunk = file["eager.c2/latency_ns"].id.get_chunk_info(0)
    content[chunk.byte_offset + 3] ^= 1
    (tmp_path / "damaged.h5").write_bytes(content)
    with h5py.File(tmp_path / "damaged.h5") as file, pytest.raises(OSError):
        file["eager.c2/latency_ns"][:]


@pytest.mark.parametrize("case,ranks", MEASURED.items())
def test_the_rank_coordinate_lists_the_ranks_that_are_present(h5, case, ranks):
    assert h5[case]["rank"][:].tolist() == ranks


def test_a_case_that_nobody_measured_says_why(h5):
    assert dict(h5["compiled.c2"].attrs)["status"] == "skipped"
    assert h5["compiled.c2"].attrs["reason"] == "no C++ compiler"
    assert len(h5["compiled.c2"]) == 0


def test_places_without_a_sample_hold_the_fill_value(h5):
    group = h5["eager.c3"]
    assert group["count"][:].tolist() == [[20, 20, 20], [20, 15, 20]]
    assert (group["latency_ns"][1, 1, 15:] == -1).all() and (group["latency_ns"][1, 1, :15] > 0).all()
    assert group["latency_ns"].attrs["_FillValue"] == -1


def test_attribution_adds_up_to_the_counter(h5):
    tracked = h5["eager.c3/attribution"]
    assert tracked["op"].asstr()[:].tolist() == ["aten::linear/aten::addmm", "aten::gelu", "aten::layer_norm"]
    assert (tracked["allocation_events"][:].sum(axis=1) == tracked["counted_allocation_events"][:]).all()


# xarray

@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_xarray_opens_every_case_without_options(folder, engine, case):
    with xr.open_dataset(folder / "run.h5", group=case, engine=engine) as data:
        data.load()
        assert data.attrs["case_id"] == case
        if case in MEASURED:
            assert data.latency_ns.dims == ("rank", "thread", "request")
            assert data.start_ns.dims == ("rank", "thread", "request")
            assert data["count"].dims == ("rank", "thread")
            assert data.reserved_bytes.dims == ("rank", "point")
            assert data.wall_ns.dims == ("rank",)
            assert sorted(data.coords) == ["point", "rank"], "no coordinate is invented"
            assert data["rank"].values.tolist() == MEASURED[case]
            assert not any(variable.dtype.kind in "mM" for variable in data.variables.values()), "no dates"


@pytest.mark.parametrize("engine", ENGINES)
def test_xarray_subtracts_counters_by_name(folder, engine):
    with xr.open_dataset(folder / "run.h5", group="eager.c2", engine=engine) as data:
        events = data.allocation_events
        assert (events.sel(point="post") - events.sel(point="pre")).values.tolist() == [440, 440, 440]
        assert events.attrs["units"] == "1" and data.reserved_bytes.attrs["units"] == "bytes"


@pytest.mark.parametrize("engine", ENGINES)
def test_xarray_masks_what_is_not_there(folder, engine):
    with xr.open_dataset(folder / "run.h5", group="eager.c3", engine=engine) as data:
        assert int(data.latency_ns.isnull().sum()) == 5
    with xr.open_dataset(folder / "run.h5", group="arena.c3", engine=engine) as data:
        assert data.reserved_bytes.sel(rank=0).isnull().all() and data.reserved_bytes.sel(rank=1).notnull().all()


@pytest.mark.parametrize("engine", ENGINES)
def test_xarray_sees_the_curve_of_a_rank_that_died(folder, engine):
    with xr.open_dataset(folder / "run.h5", group="arena.c3/soak", engine=engine) as soak:
        assert soak.host_resident_bytes.dims == ("rank", "window")
        assert soak.window.values.tolist() == [0, 1, 2, 3]
        died = soak.host_resident_bytes.sel(rank=0)
        assert died.values[:2].tolist() == [1 << 20, 2 << 20] and np.isnan(died.values[2:]).all()
        assert soak.host_resident_bytes.sel(rank=1).notnull().all()


@pytest.mark.parametrize("engine", ENGINES)
def test_xarray_opens_attribution_by_operator(folder, engine):
    with xr.open_dataset(folder / "run.h5", group="eager.c2/attribution", engine=engine) as tracked:
        assert tracked.allocation_events.dims == ("rank", "op")
        assert tracked.allocation_events.sel(rank=0, op="aten::gelu") == 7 * 40


@pytest.mark.parametrize("engine", ENGINES)
def test_xarray_opens_the_whole_file_as_a_tree(folder, engine):
    with xr.open_datatree(folder / "run.h5", engine=engine) as tree:
        assert list(tree.children) == CASES
        assert set(tree["eager.c2"].children) == {"soak", "attribution"}


# command-line tools

def test_ncdump_shows_the_header(folder):
    shown = subprocess.run(["ncdump", "-h", folder / "run.h5"], check=True, capture_output=True, text=True).stdout
    assert "int64 latency_ns(rank, thread, request) ;" in shown
    assert "int64 allocation_events(rank, op) ;" in shown
    assert re.search(r"thread = 2 ;", shown) and "UNLIMITED" not in shown
    assert "phony" not in shown


def test_h5dump_reads_all_of_it(folder):
    shown = subprocess.run(["h5dump", folder / "run.h5"], check=True, capture_output=True, text=True)
    assert "latency_ns" in shown.stdout and "error" not in shown.stderr.lower()


# the summary against the raw samples

def pooled(data):
    latency = data["latency_ns"][:].ravel()
    return latency[latency >= 0]


@pytest.mark.parametrize("case", MEASURED)
def test_numpy_finds_the_summarys_percentiles_in_the_raw_samples(h5, summary, case):
    samples = pooled(h5[case])
    result = next(r for r in summary["results"] if r["case_id"] == case)
    assert result["total_requests"] == samples.size
    for name, percent in (("p50", 50), ("p95", 95), ("p99", 99)):
        assert result["latency_ms"][name] == np.percentile(samples, percent) / 1e6, name
    assert result["latency_ms"]["min"] == samples.min() / 1e6
    assert result["latency_ms"]["max"] == samples.max() / 1e6
    assert result["latency_ms"]["mean"] == pytest.approx(samples.mean() / 1e6, rel=1e-12)


@pytest.mark.parametrize("case", MEASURED)
def test_the_summarys_counters_are_the_sums_of_the_files(h5, summary, case):
    result = next(r for r in summary["results"] if r["case_id"] == case)
    measured = h5[case]["count"][:].sum(axis=1) > 0
    for column, when in enumerate(("memory_pre", "memory_post")):
        for key, value in result[when].items():
            assert value == h5[case][key][:][measured, column].sum(), key
    assert result["wall_time_sec"] == h5[case]["wall_ns"][:][measured].max() / 1e9
