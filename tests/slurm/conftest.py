# SPDX-License-Identifier: Apache-2.0
"""A test that fails shows what its batch jobs said.

Open MPI 4.1's TCP transport calls a null pointer within MPI_Init about once in 150 starts when two "nodes" share a machine
(a core shows ompi_mpi_init, opal_progress, mca_btl_tcp). What it crashed is none of plateau's doing, so such a test is made
again; any other failure counts."""
import pytest
from _pytest.runner import runtestprotocol

CRASH_IN_MPI_INIT = "Failing at address: (nil)"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed and "tmp_path" in item.funcargs:
        for said in sorted(item.funcargs["tmp_path"].rglob("*.out")):
            report.sections.append((str(said), said.read_text(errors="replace")[-10_000:]))


def crashed_in_mpi_init(report):
    told = [report.longreprtext, *(text for _, text in report.sections)]
    return report.failed and any(CRASH_IN_MPI_INIT in text for text in told)


def pytest_runtest_protocol(item, nextitem):
    for tries_left in (2, 1, 0):
        item._initrequest()  # fixtures anew
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if tries_left == 0 or not any(map(crashed_in_mpi_init, reports)):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
