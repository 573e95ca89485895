# SPDX-License-Identifier: Apache-2.0
"""On which engine a command runs and for about how many cycles: an estimate to order commands by.

Cycles of a command alone, from its start to its end; driver.compile.clock knows the shared bus.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from driver.compile.cost import beats, bus_bytes
from driver.compile.passes import AnyCommand, ElementCopy, MatrixProduct, OtherCommand, VectorPass
from driver.config import HwConfig
from driver.isa import DTYPE_BYTES, DType, Opcode, flag_field
from driver.isa.micro import Reduce

Engine = Literal["matrix", "vector", "copy", "gather", "control"]
_ENGINES: dict[int, Engine] = {
    Opcode.MATMUL: "matrix",
    Opcode.VECTOR: "vector",
    Opcode.LOAD: "vector",
    Opcode.COPY: "copy",
    Opcode.FILL: "copy",
    Opcode.GATHER: "gather",
    Opcode.SCATTER: "gather",
}
_OVERHEAD = 40
"""Cycles of a command around its work, besides the latency of memory."""
_PRODUCT = 110
"""Of a product besides: the first tiles of both factors, and the last sums."""
_MATRIX = 45
"""Of each matrix of a batch."""
_FACTORS = 2
_LONG = 4
"""Cycles for a beat of results."""
_UNKNOWN = 1000
"""Of a command that is known by its packet alone."""


@dataclass(frozen=True)
class Timing:
    """What runs a command, for how long, and what it reads meanwhile."""

    engine: Engine
    cycles: int
    beats: int
    operands: int = 1
    """That it reads at the same time: each has its turn on the bus."""
    holds_writes: bool = False
    """Whether a burst of its results takes so long that writes of other engines wait for it."""

    @property
    def bus_share(self) -> float:
        """Of the beats that can be read in its cycles."""
        return min(self.beats / self.cycles, 1.0)


def timing_of(command: AnyCommand, hw: HwConfig) -> Timing:
    """The estimate for one command."""
    work = command.work if isinstance(command, OtherCommand) else command
    extra = _OVERHEAD + hw.dram.latency_cycles
    match work:
        case VectorPass():
            return _pass_timing(work, hw, extra)
        case MatrixProduct():
            batch, m, k = work.a.sizes
            return _product_timing((batch, m, k, work.b.sizes[2]), work.a.dtype, hw, extra)
        case ElementCopy():
            read, written = (beats(view, bus_bytes(hw)) for view in (work.source, work.result))
            return Timing("copy", extra + max(read, written), read)
    assert isinstance(command, OtherCommand)
    return _packet_timing(command, hw, extra)


def _pass_timing(one: VectorPass, hw: HwConfig, extra: int) -> Timing:
    vectors = -(-prod(one.sizes) // hw.vector_lanes)
    read, written = (
        sum(beats(view, bus_bytes(hw)) for view in views) for views in (one.sources, one.results)
    )
    sums = vectors * hw.fma_latency if one.program.reduce is not Reduce.NONE else 0
    cycles = max(vectors * len(one.program.code), read, written, sums)
    holds_writes = cycles > _LONG * written and one.program.reduce is Reduce.NONE
    return Timing("vector", extra + cycles, read, max(len(one.sources), 1), holds_writes)


def _product_timing(
    shape: tuple[int, int, int, int], dtype: DType, hw: HwConfig, extra: int
) -> Timing:
    """A row of A per cycle and tile of B, or with few rows what B takes on the bus. A is read again
    for every block of columns whose sums the accumulators hold."""
    batch, m, k, n = shape
    side = hw.array_size
    elements = bus_bytes(hw) // DTYPE_BYTES[dtype]
    rows, columns = -(-m // side), -(-n // side)
    blocks = -(-rows * columns // hw.acc_tiles)
    read = -(-k * n // elements) + blocks * -(-m * k // elements)
    array = max(m, side) * -(-k // side) * columns
    cycles = extra + _PRODUCT + batch * (_MATRIX + max(array, read))
    return Timing("matrix", cycles, batch * read, _FACTORS)


def _packet_timing(command: OtherCommand, hw: HwConfig, extra: int) -> Timing:
    packet = command.packet
    engine = _ENGINES.get(packet.opcode, "control")
    if engine == "matrix":
        m, k, n, batch = packet.params[:4]
        dtype = DType(flag_field(packet.flags, "SRC_DTYPE"))
        return _product_timing((batch, m, k, n), dtype, hw, extra)
    if engine == "copy":
        written = sum(buffer.size_bytes for buffer in command.writes) // bus_bytes(hw)
        return Timing(engine, extra + written, 0)
    return Timing(engine, extra + _UNKNOWN, 0)
