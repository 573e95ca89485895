# SPDX-License-Identifier: Apache-2.0
"""The workers behind one dask scheduler: which there are, and what is sent to one of them.

Capsules travel by hash, once to each machine. Knows no job.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from distributed import Client
from distributed.comm.core import connect
from distributed.scheduler import KilledWorker
from distributed.security import Security

from driver.capture.store import DOCUMENT_FILE, TENSOR_FILE
from driver.errors import InfrastructureError
from regress.nightly import remote
from regress.nightly.prepare import PrepareResult, PrepareStep
from regress.nightly.remote import CapsuleUpload

log = logging.getLogger(__name__)

CONNECT_S = 30
_CLIENT: Any = Client  # untyped in dask, as the next two
_CONNECT: Any = connect
_SECURITY: Any = Security
_STEP_S = 3600
_PART_BYTES = 16 << 20


class DaskWorkers:
    """A connection to a scheduler and its workers."""

    def __init__(self, address: str, cache: Path, security: Any = None) -> None:
        """`cache`: where workers keep capsules; `security` is dask's.

        InfrastructureError when no scheduler answers there, when it does not take our certificate,
        or when no worker comes.
        """
        self._cache = cache
        try:
            asyncio.run(_reach(address, security))
            options = {"security": security, "timeout": CONNECT_S, "set_as_default": False}
            self.client = _CLIENT(address, **options)
            self.client.wait_for_workers(1, timeout=CONNECT_S)
        except (TimeoutError, OSError, ValueError, RuntimeError, TypeError) as error:
            raise InfrastructureError(f"no dask workers at {address}: {error}") from error
        self._excluded: set[str] = set()
        self._uploaded: set[tuple[str, str]] = set()
        """Machine and hash of every capsule that was sent."""

    @property
    def restricted(self) -> bool:
        """Whether some workers are excluded, so that a job must say which ones may run it."""
        return bool(self._excluded)

    def present(self) -> dict[str, Any]:
        """Address → what dask knows of it, for the workers there are now and that may be used."""
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: info for address, info in found.items() if address not in self._excluded}

    def exclude(self, address: str, reason: str) -> None:
        """Give a worker nothing more."""
        log.warning("worker %s is given no more jobs: %s", address, reason)
        self._excluded.add(address)

    def upload(self, worker: str, capsules: Mapping[str, Path], *, repeat: bool) -> None:
        """Send capsules (hash → folder) to the machine of a worker, unless they were sent before
        and `repeat` is not set. KeyError or OSError when that worker has gone."""
        for key, folder in capsules.items():
            place = (self.present()[worker]["host"], key)
            if repeat or place not in self._uploaded:
                self._upload(worker, key, folder)
                self._uploaded.add(place)

    def _upload(self, worker: str, key: str, folder: Path) -> None:
        """Part after part: neither side holds more than one part in memory."""
        upload = CapsuleUpload(str(self._cache), key)
        for name, offset, data in _parts(folder):
            self._call(worker, remote.put_part, upload, name, offset, data)
        self._call(worker, remote.finish_upload, upload)

    def _call(self, worker: str, function: Any, *arguments: Any) -> None:
        """Call a function in one worker; OSError when that worker has gone."""
        self._waited(worker, self.client.submit(function, *arguments, workers=[worker], pure=False))

    def _waited(self, worker: str, future: Any, wanted: Callable[[], bool] = lambda: True) -> Any:
        """What a call in one worker gave. OSError when that worker has gone, when the answer is no
        longer wanted, or after _STEP_S."""
        end = time.monotonic() + _STEP_S
        while not future.done():
            if worker not in self.present():
                future.cancel()
                raise ConnectionError(f"worker {worker} has gone")
            if not wanted() or time.monotonic() > end:
                future.cancel()
                raise TimeoutError(f"worker {worker} was not done when it was stopped")
            with contextlib.suppress(asyncio.TimeoutError):
                future.result(timeout=1)
        return future.result()

    def build(
        self, step: PrepareStep, config_file: Path, wanted: Callable[[], bool]
    ) -> tuple[PrepareResult, bool]:
        """Do a step on one worker of every machine; the first that fails, or the last."""
        text = config_file.read_text(encoding="utf-8")
        machines = {worker["host"]: address for address, worker in self.present().items()}
        arguments = (remote.run_step, step.kind, step.what, step.how, text)
        begun = [
            (address, self.client.submit(*arguments, workers=[address], pure=False))
            for address in machines.values()
        ]
        if not begun:
            return PrepareResult(False, f"{step.name}: no worker is there to do it"), False
        try:
            answers = [self._waited(address, future, wanted) for address, future in begun]
        except (OSError, KilledWorker, asyncio.CancelledError) as error:
            return PrepareResult(False, f"{step.name}: {error}"), False
        finally:
            for _, future in begun:
                future.cancel()
        results = list(map(remote.step_result, answers))
        cached = all(was for _, was in results)
        worst = min((prepared for prepared, _ in results), key=lambda prepared: prepared.ok)
        return worst, cached


def _parts(folder: Path) -> Iterator[tuple[str, int, bytes]]:
    """Name, offset and bytes of each part of a capsule's files; an empty file is one part."""
    for name in (DOCUMENT_FILE, TENSOR_FILE):
        with (folder / name).open("rb") as file:
            offset = 0
            while (data := file.read(_PART_BYTES)) or not offset:
                yield name, offset, data
                offset += len(data)
                if not data:
                    break


async def _reach(address: str, security: Any) -> None:
    """Connect once, without a client: one that fails to start is left to the garbage collector, and
    its `__del__` blocks for ever when that happens while another client starts."""
    own = _SECURITY() if security is None else security
    comm = await _CONNECT(address, timeout=CONNECT_S, **own.get_connection_args("client"))
    await comm.close()
