# SPDX-License-Identifier: Apache-2.0
"""Fixtures that more than one test file uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from backend_host import BACKENDS, CONFIG, Host
from remote_host import connect, serving
from uio_standin import StandInBoard

from driver.backend import InspectableBackend, open_backend
from tb.pytest_suite import RUN_SEED

if TYPE_CHECKING:
    from lower_torch import TorchBench

    from tb.ops.pair import DevicePair


@pytest.fixture(scope="module", params=BACKENDS)
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InspectableBackend]:
    """One device per backend and test file."""
    with ExitStack() as stack:
        if request.param == "remote":
            backend = connect(stack.enter_context(serving("cmodel")))
        elif request.param.startswith("uio"):
            folder = tmp_path_factory.mktemp("board")
            backend = StandInBoard(CONFIG, folder, polled=request.param == "uio-polled")
        else:
            # The simulator of the RTL runs that follow: no other has to be built for it.
            options = {"variant": "check"} if request.param == "rtl" else {}
            backend = open_backend(request.param, CONFIG, **options)
        stack.callback(backend.close)
        yield backend


@pytest.fixture
def run_seed(request: pytest.FixtureRequest) -> int:
    """Of the run that a test is a check of (TEST=planted_mutants SEED=2), 1 otherwise."""
    return request.config.stash.get(RUN_SEED, 1)


@pytest.fixture
def host(opened: InspectableBackend) -> Host:
    """A device out of reset. Its memory keeps what earlier tests left."""
    opened.set_faults([])
    opened.reset()
    return Host(opened, CONFIG)


@pytest.fixture
def npu() -> Iterator[TorchBench]:
    """A cmodel of its own to which torch's tensors go."""
    from lower_torch import open_bench  # noqa: PLC0415 (torch takes seconds to import)

    opened = open_bench()
    yield opened
    opened.device.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[DevicePair]:
    """A cmodel, the judge and torch, for the calls of one test file (judged_call)."""
    from judged_call import open_pair  # noqa: PLC0415 (torch)

    opened = open_pair()
    yield opened
    opened.close()


@pytest.fixture
def ops_forgotten() -> Iterator[None]:
    """Custom ops that a test declares are gone after it: other tests go over all ops."""
    from driver import custom_ops  # noqa: PLC0415
    from driver.lower import table  # noqa: PLC0415 (takes a second)

    tables = (custom_ops._OPS, table._ROWS)
    before = [dict(kept) for kept in tables]
    yield
    for kept, old in zip(tables, before, strict=True):
        kept.clear()
        kept.update(old)


@pytest.fixture(scope="session")
def wrong_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with one job that failed on a wrong device, and the attempt's id. Only to read."""
    from night_host import wrong_night  # noqa: PLC0415 (SQLAlchemy, for those who want it)

    from regress.results.store import Store  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("wrong")
    with Store.open(folder) as store:
        _, _, made = wrong_night(store)
    return folder, made.id
