# SPDX-License-Identifier: Apache-2.0
"""Where a dask scheduler is: one that runs already, or one made for this run in a batch system.

Any client of a dask scheduler or worker can run code there. So one without TLS is taken on this
machine only, and every other connection proves itself with the certificates of the settings.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driver.errors import InfrastructureError, InputError
from regress.nightly.request import COMMAND_LINE
from regress.nightly.settings import SECTION, ClusterConfig

_BATCH = {
    "slurm": "SLURMCluster",
    "lsf": "LSFCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "htcondor": "HTCondorCluster",
}
"""Name on the command line → class of dask_jobqueue."""
_ADDRESS = re.compile(r"(tcp|tls)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
"""Protocol, host and port."""
_THIS_MACHINE = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|\[::1\]")
_PORTS = range(1, 1 << 16)


def check_scheduler(name: str, cluster: ClusterConfig, file: Path) -> None:
    """InputError unless `name` is an address or a batch system that may be used with the settings
    `cluster` of `file`. Connects to nothing."""
    found = _ADDRESS.fullmatch(name)
    if name not in _BATCH and (found is None or int(found[3]) not in _PORTS):
        expected = f"tcp://HOST:PORT, tls://HOST:PORT or one of {', '.join(_BATCH)}"
        raise InputError(COMMAND_LINE, "--scheduler", name, expected)
    for package in ("distributed", *(("dask_jobqueue",) if name in _BATCH else ())):
        if find_spec(package) is None:
            problem = f"{name} without the package {package}"
            raise InputError(COMMAND_LINE, "--scheduler", problem, "pip install 'npu-cosim[dask]'")
    if found is not None and found[1] == "tcp":
        if not _THIS_MACHINE.fullmatch(found[2]):
            expected = "tls://HOST:PORT, or tcp:// on this machine: without TLS, others run code"
            raise InputError(COMMAND_LINE, "--scheduler", name, expected)
        return
    if cluster.tls is None:
        expected = f"ca, certificate and key, for --scheduler {name}"
        raise InputError(file, f"{SECTION}.cluster.tls", "nothing", expected)
    for field, text in cluster.tls.model_dump().items():
        try:
            (file.parent / text).read_bytes()
        except OSError as error:
            place = f"{SECTION}.cluster.tls.{field}"
            raise InputError(file, place, f"{text}: {error.strerror}", "a PEM file") from error


def security_of(cluster: ClusterConfig, file: Path) -> Any:
    """dask's Security of the settings `cluster` of `file`; None without TLS."""
    if cluster.tls is None:
        return None
    from distributed.security import Security  # noqa: PLC0415 (dask)

    ca, certificate, key = (
        str((file.parent / text).absolute()) for text in cluster.tls.model_dump().values()
    )
    own = {"cert": certificate, "key": key}
    roles = {f"tls_{r}_{k}": v for r in ("client", "scheduler", "worker") for k, v in own.items()}
    make: Any = Security  # untyped in dask
    return make(tls_ca_file=ca, require_encryption=True, **roles)


@contextmanager
def scheduler_at(name: str, cluster: ClusterConfig, security: Any = None) -> Iterator[str]:
    """The address of a scheduler: `name` itself, or that of workers in the batch system `name`."""
    if name not in _BATCH:
        yield name
        return
    with _batch(name, cluster, security) as running:
        running.scale(cluster.workers)
        yield str(running.scheduler_address)


def _batch(name: str, cluster: ClusterConfig, security: Any) -> Any:
    former = signal.getsignal(signal.SIGINT)
    import dask_jobqueue  # noqa: PLC0415 (an optional package)

    # It makes Ctrl-C an exit with status 0: an interrupted night would be green.
    signal.signal(signal.SIGINT, former)
    make = getattr(dask_jobqueue, _BATCH[name])
    try:
        return make(
            cores=cluster.cores,
            processes=1,
            memory=cluster.memory,
            security=security,
            scheduler_options={"dashboard_address": "127.0.0.1:0"},  # any port that is free
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise InfrastructureError(f"{name}: {error}") from error
