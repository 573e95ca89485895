# SPDX-License-Identifier: Apache-2.0
"""On which engine a command runs and for about how many cycles: an estimate to order commands by.

Cycles of a command alone, from its start to its end; that engines share the bus is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from driver.compile.cost import beats, bus_bytes
from driver.compile.passes import AnyCommand, ElementCopy, MatrixProduct, OtherCommand, VectorPass
from driver.config import HwConfig
from driver.isa import Opcode
from driver.isa.micro import Reduce

Engine = Literal["matrix", "vector", "move", "gather", "control"]
_ENGINES: dict[int, Engine] = {
    Opcode.MATMUL: "matrix",
    Opcode.VECTOR: "vector",
    Opcode.LOAD: "vector",
    Opcode.COPY: "move",
    Opcode.FILL: "move",
    Opcode.GATHER: "gather",
    Opcode.SCATTER: "gather",
}
_OVERHEAD = 40
"""Cycles of a command around its work, besides the latency of memory."""
_PRODUCT = 600
"""Of a product besides: the first tiles of both factors, and the last sums."""
_MATRIX = 140
"""Of each matrix of a batch."""
_UNKNOWN = 1000
"""Of a command that is known by its packet alone."""


@dataclass(frozen=True)
class Timing:
    """What runs a command, and for how long."""

    engine: Engine
    cycles: int


def timing_of(command: AnyCommand, hw: HwConfig) -> Timing:
    """The estimate for one command."""
    work = command.work if isinstance(command, OtherCommand) else command
    extra = _OVERHEAD + hw.dram.latency_cycles
    match work:
        case VectorPass():
            return Timing("vector", extra + _vector_cycles(work, hw))
        case MatrixProduct():
            return Timing("matrix", extra + _matrix_cycles(work, hw))
        case ElementCopy():
            moved = max(beats(view, bus_bytes(hw)) for view in (work.source, work.result))
            return Timing("move", extra + moved)
    assert isinstance(command, OtherCommand)
    engine = _ENGINES.get(command.packet.opcode, "control")
    return Timing(engine, extra + _packet_cycles(command, hw, engine))


def _vector_cycles(one: VectorPass, hw: HwConfig) -> int:
    vectors = -(-prod(one.sizes) // hw.vector_lanes)
    read, written = (
        sum(beats(view, bus_bytes(hw)) for view in views) for views in (one.sources, one.results)
    )
    sums = vectors * hw.fma_latency if one.program.reduce is not Reduce.NONE else 0
    return max(vectors * len(one.program.code), read, written, sums)


def _matrix_cycles(one: MatrixProduct, hw: HwConfig) -> int:
    batch, m, k = one.a.sizes
    return _product_cycles(batch, m, k, one.b.sizes[2], hw)


def _product_cycles(batch: int, m: int, k: int, n: int, hw: HwConfig) -> int:
    """A row of A per cycle and tile of B; with few rows, what B takes on the bus."""
    side = hw.array_size
    rows = max(m, side)
    return _PRODUCT + batch * (_MATRIX + rows * -(-k // side) * -(-n // side))


def _packet_cycles(command: OtherCommand, hw: HwConfig, engine: Engine) -> int:
    if engine == "matrix":
        m, k, n, batch = command.packet.params[:4]
        return _product_cycles(batch, m, k, n, hw)
    if engine == "move":
        return sum(buffer.size_bytes for buffer in command.writes) // bus_bytes(hw)
    return _UNKNOWN
