# SPDX-License-Identifier: Apache-2.0
"""How long each engine worked, and how long commands waited for it and for each other.

The registers ENGINE_BUSY, ENGINE_WAIT and COMMAND_WAIT (docs/registers.md), since PERF_CTRL.clear.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from driver.backend import Backend
from driver.isa import csr


class Engine(IntEnum):
    """In the order of the registers."""

    COPY = 0
    MATRIX = 1
    VECTOR = 2
    GATHER = 3


@dataclass(frozen=True)
class EngineCounters:
    """Of one engine, in cycles. A model without a clock counts nothing."""

    busy: int
    """It had a command."""
    wanted: int
    """A command waited for it, and for nothing else."""
    waited_for: dict[Engine, int]
    """A command of it waited for one of that engine, for memory or because that one might fail."""


def command_wait(engine: Engine, earlier: Engine) -> int:
    """The register of the cycles in which a command of `engine` waited for one of `earlier`."""
    return csr.ARRAYS["COMMAND_WAIT"][len(Engine) * engine + earlier]


def read_engine_counters(backend: Backend) -> dict[Engine, EngineCounters]:
    """The counters of all engines now. They wrap at 2³²."""
    return {
        engine: EngineCounters(
            busy=backend.read_csr(csr.ARRAYS["ENGINE_BUSY"][engine]),
            wanted=backend.read_csr(csr.ARRAYS["ENGINE_WAIT"][engine]),
            waited_for={other: backend.read_csr(command_wait(engine, other)) for other in Engine},
        )
        for engine in Engine
    }
