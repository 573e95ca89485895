# SPDX-License-Identifier: Apache-2.0
"""Where a dask scheduler is: one that runs already, or one made for this run in a batch system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from driver.errors import InfrastructureError, InputError
from regress.nightly.request import COMMAND_LINE
from regress.nightly.settings import Cluster

_BATCH = {
    "slurm": "SLURMCluster",
    "lsf": "LSFCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
}
"""Name on the command line → class of dask_jobqueue."""
_ADDRESSES = ("tcp://", "tls://")


@contextmanager
def scheduler_at(name: str, cluster: Cluster) -> Iterator[str]:
    """The address of a scheduler: `name` itself, or that of workers in the batch system `name`."""
    if name.startswith(_ADDRESSES):
        yield name
        return
    if name not in _BATCH:
        expected = f"tcp://HOST:PORT, tls://HOST:PORT or one of {', '.join(_BATCH)}"
        raise InputError(COMMAND_LINE, "--scheduler", name, expected)
    with _batch(name, cluster) as running:
        running.scale(cluster.workers)
        yield str(running.scheduler_address)


def _batch(name: str, cluster: Cluster) -> Any:
    try:
        import dask_jobqueue  # noqa: PLC0415 (an extra of its own)
    except ImportError as error:
        expected = "pip install npu-cosim[cluster]"
        raise InputError(
            COMMAND_LINE, "--scheduler", f"{name} without dask-jobqueue", expected
        ) from error
    make = getattr(dask_jobqueue, _BATCH[name])
    try:
        return make(
            cores=cluster.cores,
            processes=1,
            memory=cluster.memory,
            scheduler_options={"dashboard_address": ":0"},  # any port that is free
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise InfrastructureError(f"{name}: {error}") from error
