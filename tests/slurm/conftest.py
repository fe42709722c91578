# SPDX-License-Identifier: Apache-2.0
"""Open MPI 4.1's TCP transport calls a null pointer within MPI_Init about once in 150 starts when two "nodes" share a machine
(a core shows ompi_mpi_init, opal_progress, mca_btl_tcp). What it crashed is none of plateau's doing, so such a test is made
again; any other failure counts."""
from _pytest.runner import runtestprotocol

CRASH_IN_MPI_INIT = "Failing at address: (nil)"


def pytest_runtest_protocol(item, nextitem):
    for tries_left in (2, 1, 0):
        item._initrequest()  # fixtures anew
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if tries_left == 0 or not any(r.failed and CRASH_IN_MPI_INIT in r.longreprtext for r in reports):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
