# SPDX-License-Identifier: Apache-2.0
"""What a pass costs, roughly: cycles of the vector engine, and bytes on the bus.

An estimate to decide by, not a model of the hardware: what runs is measured (docs/fusion.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from driver.compile.decoding import DecodedProgram
from driver.compile.passes import VectorPass
from driver.config import HwConfig
from driver.isa import DTYPE_BYTES, Opcode
from driver.runtime.program import Program
from driver.runtime.views import TensorView

_COMMAND_CYCLES = 100
"""Fetch, check, descriptors, first data and the completion record of one command."""
_BITS = 8


@dataclass(frozen=True)
class VectorTraffic:
    """What the vector engine does for a program."""

    passes: int
    size_bytes: int
    """Elements read and written, as PassCost counts them; descriptors and images are not."""


def vector_traffic(program: Program) -> VectorTraffic:
    """Of all VECTOR commands."""
    passes, size_bytes = 0, 0
    for command in DecodedProgram(program).commands:
        if isinstance(command, VectorPass):
            views: tuple[TensorView, ...] = (*command.sources, *command.results)
        elif command.packet.opcode == Opcode.VECTOR:
            views = command.listed
        else:
            continue
        passes += 1
        size_bytes += sum(_elements(view) * DTYPE_BYTES[view.dtype] for view in views)
    return VectorTraffic(passes, size_bytes)


@dataclass(frozen=True)
class PassCost:
    """One pass, or the sum of several."""

    effort: int
    """Cycles of the engine, and beats on the bus, which other engines then cannot have."""
    size_bytes: int
    """Elements read and written, each once; a repeated element counts once per row."""

    def __add__(self, other: PassCost) -> PassCost:
        return PassCost(self.effort + other.effort, self.size_bytes + other.size_bytes)


def pass_cost(one: VectorPass, hw: HwConfig) -> PassCost:
    """Of one VECTOR command."""
    vectors = -(-prod(one.sizes) // hw.vector_lanes)
    read, written = (
        sum(beats(view, bus_bytes(hw)) for view in views) for views in (one.sources, one.results)
    )
    commands = 1 + (1 + len(one.words) if one.words else 0)  # LOAD, and a COPY per word
    cycles = commands * _COMMAND_CYCLES + max(vectors * len(one.program.code), read, written)
    moved = (*one.sources, *one.results)
    size_bytes = sum(_elements(view) * DTYPE_BYTES[view.dtype] for view in moved)
    return PassCost(cycles + read + written, size_bytes)


def _elements(view: TensorView) -> int:
    """Elements that are moved: along a row, repeated ones are one."""
    *outer, inner = zip(view.sizes, view.strides, strict=True)
    rows = prod(size for size, _ in outer)
    if not any(stride for _, stride in outer):
        rows = 1
    size, stride = inner
    return rows * (size if stride else 1)


def bus_bytes(hw: HwConfig) -> int:
    """Bytes of a beat."""
    return hw.bus_bits // _BITS


def beats(view: TensorView, beat_bytes: int) -> int:
    """Bus beats for the elements: those that lie next to each other share beats."""
    size, stride = view.sizes[-1], view.strides[-1]
    rows = _elements(view) // (size if stride else 1)
    step = stride * DTYPE_BYTES[view.dtype]
    return rows * max(1, -(-size * min(step, beat_bytes) // beat_bytes))
