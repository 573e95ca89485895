# SPDX-License-Identifier: Apache-2.0
"""What the netlist of a configuration costs: the record between its measurement and its pages."""

from __future__ import annotations

from typing import Literal

from driver.frozen import Frozen

Figure = Literal["cells", "flip_flops", "memories", "memory_bits", "multipliers", "dsp", "levels"]
FIGURES: tuple[Figure, ...] = (
    "cells",
    "flip_flops",
    "memories",
    "memory_bits",
    "multipliers",
    "dsp",
    "levels",
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
    levels: int
    """Of the longest path that ends in one of its registers; for the top also in a pin."""


FpgaFigure = Literal["luts", "carries", "lut_rams", "flip_flops", "block_rams", "multipliers"]
FPGA_FIGURES: tuple[FpgaFigure, ...] = (
    "luts",
    "carries",
    "lut_rams",
    "flip_flops",
    "block_rams",
    "multipliers",
)
"""The fields of an FpgaCost that are numbers, in the order of every table."""


class FpgaCost(Frozen):
    """Cells of an ECP5, before placement: the sum over modules that are mapped one by one."""

    block: str
    """Path of the instance; the top module is ""."""
    luts: int
    """LUT4, without those inside carries and LUT RAMs."""
    carries: int
    """CCU2C: two bits of a carry chain, with two LUTs."""
    lut_rams: int
    """TRELLIS_DPR16X4: 16 words of 4 bits."""
    flip_flops: int
    block_rams: int
    """DP16KD: 18 Kibit."""
    multipliers: int
    """MULT18X18D."""


class FpgaUnmapped(Frozen):
    """A block without figures."""

    block: str
    modules: tuple[str, ...]
    """The modules in it that were not done in their time."""


class FpgaModule(Frozen):
    """All instances of one module of the RTL."""

    instances: int
    cost: FpgaCost
    """Of all of them together, without the modules in them; `block` is the module's name."""


class FpgaMapping(Frozen):
    """The blocks of one configuration on an FPGA."""

    device: str
    tool: str
    limit_s: float
    """CPU time that each module was given."""
    blocks: tuple[FpgaCost, ...]
    """Those that are directly in npu_core, the whole first."""
    unmapped: tuple[FpgaUnmapped, ...]
    modules: tuple[FpgaModule, ...]
    """Most LUTs first."""


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
    fpga: FpgaMapping | None = None
    """None: it was not asked for."""
