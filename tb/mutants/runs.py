# SPDX-License-Identifier: Apache-2.0
"""The runs that catch planted mutants: arguments of `npu-cosim run`."""

from __future__ import annotations

from typing import Final

STREAMS: Final = ("overlap", "--op", "0")
STREAM_BUS_ERRORS: Final = ("overlap", "--op", "3")
MEETINGS: Final = ("overlap", "--op", "9")
SYNCS: Final = ("overlap", "--op", "11")
RESETS: Final = ("overlap", "--op", "12")
REFUSED_LOADS: Final = ("overlap", "--op", "13")
TURNS: Final = ("overlap", "--op", "14")
REGISTER_ACCESS: Final = ("bus", "--op", "0")
FRONT_DOOR: Final = ("bus", "--op", "1")
RANDOM: Final = ("bus", "--op", "2")
RANDOM_STALLS: Final = ("bus", "--op", "3")
ERRORS: Final = ("bus", "--op", "4")
INTERRUPTS: Final = ("bus", "--op", "6")
BUS_ERRORS: Final = ("bus", "--op", "7")
IMAGES: Final = ("bus", "--op", "8")
RELOADS: Final = ("bus", "--op", "9")
OPERANDS: Final = ("bus", "--op", "10")
COUNTERS: Final = ("bus", "--op", "11")
SEVERAL_ERRORS: Final = ("bus", "--op", "12")
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
