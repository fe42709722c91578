# SPDX-License-Identifier: Apache-2.0
"""What holds for the whole checkout: who may include and link what, and what every file must say."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = {"build", ".venv", "runs", ".git", ".cache", "__pycache__", ".pytest_cache"}
TOP = ["CMakeLists.txt", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "orchestrator", "worker", "schemas",
       "jobs", "tests", "slurm", "script", "docs"]

# Each heavy library by what its includes look like.
LIBRARIES = {
    "torch": r"(torch|ATen|c10|caffe2)/",
    "cuda": r"(cuda|cublas|cusolver|nvrtc|nvtx)",
    "nccl": r"nccl",
    "mpi": r"(mpi\.h|pmix)",
    "hdf5": r"(hdf5|H5)",
    "cli11": r"CLI/",
    "fmt": r"(fmt|spdlog)/",
    "nlohmann": r"nlohmann/",
    "testing": r"(gtest|gmock|benchmark|valijson)/",
}

# The libraries that a folder may include; the longest folder that fits a file counts. A library that is not named for
# it is refused.
MAY_INCLUDE = {
    "schemas": {"nlohmann"},
    "orchestrator": set(),
    "orchestrator/rank": {"mpi", "fmt"},
    "orchestrator/store": {"hdf5"},
    "orchestrator/cli": {"cli11", "fmt"},
    "orchestrator/main.cpp": {"cli11"},
    "worker": {"torch", "cuda", "nccl"},
    "worker/load": set(),
    "tests": {"testing", "nlohmann"},
    "tests/support/fake_nccl.c": {"nccl"},
    "tests/torch": {"testing", "nlohmann", "torch", "cuda"},
    "bench": {"testing", "torch", "cuda"},
}

# The project's own folders that a folder may include.
MAY_USE = {
    "schemas": {"schemas"},
    "orchestrator": {"schemas", "orchestrator"},
    "worker": {"schemas", "worker"},
    "tests": {"schemas", "orchestrator", "worker", "tests"},
    "bench": {"schemas", "orchestrator", "worker", "tests", "bench"},
}

# Folders of pure functions: their results depend on their arguments alone.
PURE = {"orchestrator/analysis", "orchestrator/report", "orchestrator/launch"}
# What they have no use for. launch/context.cpp alone looks around, once, to give the others an environment.
IMPURE = re.compile(r"^(unistd\.h|spawn\.h|fcntl\.h|poll\.h|sys/.*|csignal|fstream|thread|future)$")
MAY_LOOK_AROUND = {"orchestrator/launch/context.cpp"}


def own_files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in MADE and not f.startswith("build-")]
        for name in names:
            yield (Path(folder) / name).relative_to(ROOT).as_posix()


def sources(*endings):
    return sorted(f for f in own_files() if f.endswith(endings))


def text(file):
    return (ROOT / file).read_text(encoding="utf-8")


def rule(table, file):
    fitting = [folder for folder in table if file == folder or file.startswith(folder + "/")]
    return table[max(fitting, key=len)] if fitting else None


def includes(file):
    return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', text(file), re.M)


CODE = sources(".cpp", ".hpp", ".c", ".h")


def test_the_sources_are_found():
    assert len(CODE) > 50
    assert {f.split("/")[0] for f in CODE} <= set(MAY_USE)


def test_every_folder_includes_only_the_libraries_that_are_its_own():
    wrong = [f"{file} includes {include}" for file in CODE for include in includes(file)
             for library, pattern in LIBRARIES.items()
             if re.match(pattern, include) and library not in rule(MAY_INCLUDE, file)]
    assert not wrong, "\n".join(wrong)


def test_every_folder_uses_only_the_folders_below_it():
    wrong = []
    for file in CODE:
        for include in includes(file):
            folder = include.split("/")[0]
            if folder in MAY_USE and folder not in rule(MAY_USE, file):
                wrong.append(f"{file} includes {include}")
            impure = include.startswith(("orchestrator/rank", "orchestrator/cli", "orchestrator/process", "orchestrator/store"))
            impure = impure or (IMPURE.match(include) and file not in MAY_LOOK_AROUND)
            if impure and any(file.startswith(p + "/") for p in PURE):
                wrong.append(f"{file} is pure, but includes {include}")
    assert not wrong, "\n".join(wrong)


def test_own_headers_are_included_from_the_top_folder():
    wrong = [f"{file} includes {include}" for file in CODE if file.endswith("pp")
             for include in re.findall(r'^#include "([^"]+)"', text(file), re.M)
             if not (ROOT / include).is_file() and "/" in include]
    assert not wrong, "\n".join(wrong)


def test_every_source_says_its_licence():
    wrong = []
    for file in own_files():
        shell = file.startswith(("script/", ".ci/")) and "." not in file.split("/")[-1]
        if shell or file.endswith((".cpp", ".hpp", ".c", ".h", ".py", ".sh", ".cmake")) or file.endswith("CMakeLists.txt"):
            if not any("SPDX-License-Identifier: Apache-2.0" in line for line in text(file).splitlines()[:2]):
                wrong.append(file)
    assert not wrong, "\n".join(wrong)


def test_every_header_is_guarded_by_a_pragma():
    assert not [file for file in sources(".hpp") if "#pragma once" not in text(file)]


def test_what_must_be_at_the_top_is_there():
    assert not [entry for entry in TOP if not (ROOT / entry).exists()]


def test_no_file_names_a_place_on_somebodys_machine():
    place = re.compile(r"(?<![\w.})$])/(?:home|root|work|Users)/\w")
    wrong = []
    for file in own_files():
        data = (ROOT / file).read_bytes()
        if b"\0" in data:
            continue
        wrong += [f"{file}:{n}: {line.strip()}" for n, line in enumerate(data.decode(errors="replace").splitlines(), 1) if place.search(line)]
    assert not wrong, "\n".join(wrong)


def test_ready_jobs_and_schemas_are_json():
    for file in sources(".json"):
        json.loads(text(file))


def test_every_path_that_a_document_names_is_there():
    wrong = []
    for file in sources(".md"):
        for path in re.findall(r"\]\((?!https?:|#)([^)#]+)", text(file)):
            if not (ROOT / file).parent.joinpath(path).exists():
                wrong.append(f"{file} links to {path}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("program, foreign", [
    ("plateau", r"lib(torch|c10|cud|cublas|nccl|nv)"),
    ("plateau-worker", r"lib(mpi|open-rte|open-pal|pmix|hdf5)"),
])
def test_a_program_links_none_of_the_others_libraries(program, foreign):
    path = Path(os.environ["PLATEAU_BIN"]) / program
    if not path.exists():
        pytest.skip(f"{program} is not built here")
    linked = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    assert not re.findall(rf"^\s*({foreign}\S*)", linked, re.M)
    assert "libc.so" in linked
