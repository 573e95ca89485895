# SPDX-License-Identifier: Apache-2.0
"""Fixtures that more than one test file uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from backend_host import BACKENDS, CONFIG, Host

from driver.backend import InspectableBackend, open_backend

if TYPE_CHECKING:
    from lower_torch import TorchBench


@pytest.fixture(scope="module", params=BACKENDS)
def opened(request: pytest.FixtureRequest) -> Iterator[InspectableBackend]:
    """One device per backend and test file."""
    backend = open_backend(request.param, CONFIG)
    yield backend
    backend.close()


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
