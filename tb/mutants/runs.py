# SPDX-License-Identifier: Apache-2.0
"""The runs that catch planted mutants: arguments of `npu-cosim run`."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from tb.tests import bus, overlap


def _one(tests: ModuleType, name: str) -> tuple[str, ...]:
    """One test of those that run together."""
    return (tests.INFO.name, "--op", str(tests.TESTS.index(name)))


STREAMS: Final = _one(overlap, "Dependent")
STREAM_BUS_ERRORS: Final = _one(overlap, "BusErrorInStream")
MEETINGS: Final = _one(overlap, "OneDependence")
SYNCS: Final = _one(overlap, "SyncsOfBothQueues")
RESETS: Final = _one(overlap, "ResetsInTheMiddle")
REFUSED_LOADS: Final = _one(overlap, "RefusedLoads")
TURNS: Final = _one(overlap, "QueuesTakeTurns")
LOADS: Final = _one(overlap, "LoadsAlone")
REFUSED_RECORDS: Final = _one(overlap, "RecordsRefused")
SYNC_AND_ERROR: Final = _one(overlap, "SyncsBesideErrors")
BOTH_RESET: Final = _one(overlap, "ResetsWithBothQueues")
BOTH_FAIL: Final = _one(overlap, "BothQueuesFail")
REGISTER_ACCESS: Final = _one(bus, "Registers")
FRONT_DOOR: Final = _one(bus, "FrontDoor")
RANDOM: Final = _one(bus, "RandomCommands")
RANDOM_STALLS: Final = _one(bus, "Stalls")
ERRORS: Final = _one(bus, "Errors")
INTERRUPTS: Final = _one(bus, "Interrupts")
BUS_ERRORS: Final = _one(bus, "BusErrors")
IMAGES: Final = _one(bus, "MalformedImages")
RELOADS: Final = _one(bus, "ReloadedPrograms")
OPERANDS: Final = _one(bus, "Operands")
COUNTERS: Final = _one(bus, "CommandCounters")
RINGS: Final = _one(bus, "Rings")
EMPTIED: Final = _one(bus, "Emptied")
LONG: Final = _one(bus, "LongDimensions")
SEVERAL_ERRORS: Final = _one(bus, "SeveralErrors")
STALLED_OPS: Final = ("ops_stalls",)
INT4: Final = ("ops", "--filter", "int4_mm")
POOLS: Final = ("ops", "--filter", "pool2d")
PRODUCTS: Final = ("ops", "--filter", "convolution")
"""Convolutions: products of windows, each judged on its own."""
CONVERSIONS: Final = ("ops", "--filter", "aten._to_copy.")
TABLES: Final = ("ops", "--filter", "aten.tanh.")

UNITS: Final = ("units",)
"""Every unit bench whose RTL the mutant is in."""

LADDER: Final = (
    ("smoke",),
    RANDOM,
    STREAMS,
    OPERANDS,
    INT4,
    PRODUCTS,
    STALLED_OPS,
    ("stalls",),
    ("bus",),
    ("overlap",),
    ("ops",),
    UNITS,
)
"""What a sampled mutant goes through until a run fails, quick runs first."""
COUNTED: Final = (("smoke",), ("ops",))
"""Those of them whose ops have cycles in the baseline of the ci tier."""
