# SPDX-License-Identifier: Apache-2.0
"""What the netlist of a configuration costs: the record between its measurement and its pages."""

from __future__ import annotations

from typing import Literal

from driver.frozen import Frozen

Figure = Literal["cells", "flip_flops", "memories", "memory_bits", "multipliers", "dsp"]
FIGURES: tuple[Figure, ...] = (
    "cells",
    "flip_flops",
    "memories",
    "memory_bits",
    "multipliers",
    "dsp",
)
"""The fields of a BlockCost that are numbers, in the order of every table."""


class BlockCost(Frozen):
    """One instance with everything in it."""

    block: str
    """Path of the instance below the top module; the top is ""."""
    cells: int
    """Word-level cells: an adder of 32 bits is one."""
    flip_flops: int
    """Bits of registers that are no memory."""
    memories: int
    memory_bits: int
    multipliers: int
    dsp: int
    """Multiplier blocks of 18×18 bits that the multipliers would take; an estimate from widths."""


class LogicPath(Frozen):
    """A longest path between registers, memories and pins."""

    levels: int
    """Levels of two-input gates, by the table of tb/netlist/depth.py; no wires, no placement."""
    start: str
    end: str
    by_block: tuple[tuple[str, int], ...]
    """Block → levels on the way, in order."""


class SynthesisReport(Frozen):
    """One configuration."""

    config: str
    parameters: dict[str, str]
    tool: str
    key: str
    """Hash of sources, parameters and tool."""
    blocks: tuple[BlockCost, ...]
    paths: tuple[LogicPath, ...]
    clock_gates: tuple[str, ...]
    latches: tuple[str, ...]
    """Those that are no clock gate's: there must be none."""
