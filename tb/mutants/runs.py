# SPDX-License-Identifier: Apache-2.0
"""The runs that catch planted mutants: arguments of `npu-cosim run`."""

from __future__ import annotations

from typing import Final

from tb.tests import bus, overlap


def _bus(test: str) -> tuple[str, ...]:
    """One test of TEST=bus."""
    return (bus.INFO.name, "--op", str(bus.TESTS.index(test)))


def _overlap(test: str) -> tuple[str, ...]:
    """One test of TEST=overlap."""
    return (overlap.INFO.name, "--op", str(overlap.TESTS.index(test)))


STREAMS: Final = _overlap("Dependent")
STREAM_BUS_ERRORS: Final = _overlap("BusErrorInStream")
MEETINGS: Final = _overlap("OneDependence")
SYNCS: Final = _overlap("SyncsOfBothQueues")
RESETS: Final = _overlap("ResetsInTheMiddle")
REFUSED_LOADS: Final = _overlap("RefusedLoads")
TURNS: Final = _overlap("QueuesTakeTurns")
REGISTER_ACCESS: Final = _bus("Registers")
FRONT_DOOR: Final = _bus("FrontDoor")
RANDOM: Final = _bus("RandomCommands")
RANDOM_STALLS: Final = _bus("Stalls")
ERRORS: Final = _bus("Errors")
INTERRUPTS: Final = _bus("Interrupts")
BUS_ERRORS: Final = _bus("BusErrors")
IMAGES: Final = _bus("MalformedImages")
RELOADS: Final = _bus("ReloadedPrograms")
OPERANDS: Final = _bus("Operands")
COUNTERS: Final = _bus("CommandCounters")
SEVERAL_ERRORS: Final = _bus("SeveralErrors")
STALLED_OPS: Final = ("ops_stalls",)
GATES: Final = ("ops", "--filter", "gelu")
INT4: Final = ("ops", "--filter", "int4_mm")
POOLS: Final = ("ops", "--filter", "pool2d")
PRODUCTS: Final = ("ops", "--filter", "convolution")
"""Convolutions: products of windows, each judged on its own."""
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
