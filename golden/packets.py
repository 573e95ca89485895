# SPDX-License-Identifier: Apache-2.0
"""The third opinion on one packet: an element of its destination, by integers, from its memory.

golden.judge decides by an op's tensors; this module decides by a packet's bytes which of RTL and
cmodel executed it wrongly. Reads packets and descriptors by driver.isa's layout alone;
shares no code with the cmodel, and knows nothing of lowering.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from driver.isa import (
    DESCRIPTOR_BYTES,
    DTYPE_BYTES,
    Descriptor,
    DType,
    Opcode,
    Packet,
    flag_field,
)
from driver.isa.micro import Reduce
from driver.isa.programs import PROGRAMS
from driver.results import Blame
from golden import softfloat, softvector

ReadMemory = Callable[[int, int], bytes]
"""(address, bytes) → what lay there before the packet ran."""
Index = tuple[int, ...]

_PROGRAMS = list(PROGRAMS.values())
_IMM0 = 2
_ONE = 0x3F80_0000


@dataclass(frozen=True)
class View:
    """An operand in memory: strides in elements."""

    base: int
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def address(self, index: Index) -> int:
        """Where an element lies."""
        offset = sum(i * stride for i, stride in zip(index, self.strides, strict=True))
        return self.base + offset * DTYPE_BYTES[self.dtype]

    def bits(self, read: ReadMemory, index: Index) -> int:
        """An element."""
        return int.from_bytes(read(self.address(index), DTYPE_BYTES[self.dtype]), "little")

    def index_of(self, address: int) -> Index | None:
        """The element that the byte at `address` is part of; None when it is of none."""
        offset = (address - self.base) // DTYPE_BYTES[self.dtype]
        if offset < 0:
            return None
        order = sorted(range(len(self.sizes)), key=lambda d: -self.strides[d])
        index = [0] * len(self.sizes)
        for d in order:
            if self.sizes[d] > 1:
                index[d] = min(offset // self.strides[d], self.sizes[d] - 1)
                offset -= index[d] * self.strides[d]
        return tuple(index) if offset == 0 else None


@dataclass(frozen=True)
class Execution:
    """A packet that the device accepts, with the memory that it began with."""

    packet: Packet
    read: ReadMemory

    def flag(self, name: str) -> int:
        """A field of the flags."""
        return flag_field(self.packet.flags, name)

    def param(self, number: int) -> int:
        """A parameter."""
        return self.packet.params[number] if number < len(self.packet.params) else 0

    def view(self, name: str, address: int, dtype: int, sizes: tuple[int, ...] | None) -> View:
        """Operand `name`: by its descriptor, or dense with `sizes`."""
        if self.flag(f"{name}_DESC"):
            found = Descriptor.unpack(self.read(address, DESCRIPTOR_BYTES))
            return View(found.base, DType(dtype), found.sizes, found.strides)
        assert sizes is not None
        strides = tuple(prod(sizes[d + 1 :]) for d in range(len(sizes)))
        return View(address, DType(dtype), sizes, strides)


def destination(packet: Packet, read: ReadMemory) -> View:
    """Where the packet writes."""
    return _OPERATIONS[Opcode(packet.opcode)].destination(Execution(packet, read))


def third_opinion_packet(packet: Packet, read: ReadMemory, index: Index) -> int:
    """Bits of element `index` of the destination after the packet."""
    return _OPERATIONS[Opcode(packet.opcode)].element(Execution(packet, read), index)


def blame_packet(
    packet: Packet, read: ReadMemory, index: Index, cmodel: int, rtl: int
) -> tuple[Blame, int]:
    """Whose bits of an element of the destination are wrong, and the right ones.

    The RTL when neither agrees with the third opinion.
    """
    right = third_opinion_packet(packet, read, index)
    return ("cmodel" if rtl == right != cmodel else "rtl"), right


# ---------------------------------------------------------------------- MATMUL
def _matmul_views(run: Execution) -> tuple[View, View, View]:
    m, k, n, batch = (run.param(i) for i in range(4))
    src, dst = run.flag("SRC_DTYPE"), run.flag("DST_DTYPE")
    a_sizes = (batch, k, m) if run.flag("TRANS_A") else (batch, m, k)
    b_sizes = (batch, n, k) if run.flag("TRANS_B") else (batch, k, n)
    packet = run.packet
    return (
        run.view("SRC1", packet.src1, src, a_sizes),
        run.view("SRC2", packet.src2, src, b_sizes),
        run.view("DST", packet.dst, dst, (batch, m, n)),
    )


def _matmul_element(run: Execution, index: Index) -> int:
    a, b, c = _matmul_views(run)
    batch, row, column = index
    terms = range(run.param(1))
    left = [(batch, k, row) if run.flag("TRANS_A") else (batch, row, k) for k in terms]
    right = [(batch, column, k) if run.flag("TRANS_B") else (batch, k, column) for k in terms]
    start = c.bits(run.read, index) if run.flag("ACCUMULATE") else None
    factors = ([a.bits(run.read, at) for at in left], [b.bits(run.read, at) for at in right])
    return softfloat.chain(*factors, start, a.dtype, c.dtype)


# ---------------------------------------------------------------------- VECTOR
def _vector_sources(run: Execution) -> list[View]:
    program = _PROGRAMS[run.param(0)]
    addresses = (run.packet.src1, run.packet.src2, run.param(6) | run.param(7) << 32)
    types = (run.flag("SRC_DTYPE"), run.flag("SRC2_DTYPE"), run.flag("SRC3_DTYPE"))
    return [
        run.view(f"SRC{i + 1}", addresses[i], types[i], (run.param(1),))
        for i in range(program.sources)
    ]


def _vector_destination(run: Execution) -> View:
    return run.view("DST", run.packet.dst, run.flag("DST_DTYPE"), (run.param(1),))


def _vector_element(run: Execution, index: Index) -> int:
    program, sources = _PROGRAMS[run.param(0)], _vector_sources(run)
    imms = [run.param(_IMM0 + i) for i in range(4)]

    def word(at: Index) -> int:
        operands = [softvector.load(x.dtype, x.bits(run.read, at)) for x in sources]
        return softvector.run(program, operands, imms, at[-1])

    if program.reduce is Reduce.NONE:
        result = word(index)
    else:
        row = range(sources[0].sizes[-1])
        result = softvector.reduce(program.reduce, [word((*index[:-1], i)) for i in row])
    return softvector.store(_vector_destination(run).dtype, result)


# ---------------------------------------------------------------------- COPY, FILL, SYNC
def _copy_views(run: Execution) -> tuple[View, View]:
    dtype, packet = run.flag("SRC_DTYPE"), run.packet
    sizes: tuple[int, ...] = (run.param(0),)
    for name, address in (("SRC1", packet.src1), ("DST", packet.dst)):
        if run.flag(f"{name}_DESC"):
            sizes = run.view(name, address, dtype, None).sizes
    return (
        run.view("SRC1", packet.src1, dtype, sizes),
        run.view("DST", packet.dst, dtype, sizes),
    )


def _fill_destination(run: Execution) -> View:
    return run.view("DST", run.packet.dst, run.flag("DST_DTYPE"), (run.param(0),))


def _sync_destination(run: Execution) -> View:
    return View(run.packet.dst, DType.INT32, (1,), (1,))


# ---------------------------------------------------------------------- GATHER, SCATTER
def _indexed_views(run: Execution) -> tuple[View, View, View]:
    packet, dtype = run.packet, run.flag("SRC_DTYPE")
    return (
        run.view("SRC1", packet.src1, dtype, None),
        run.view("SRC2", packet.src2, run.flag("SRC2_DTYPE"), None),
        run.view("DST", packet.dst, dtype, None),
    )


def _gather_element(run: Execution, index: Index) -> int:
    table, indices, _ = _indexed_views(run)
    dim = run.param(0)
    return table.bits(run.read, (*index[:dim], indices.bits(run.read, index), *index[dim + 1 :]))


def _scatter_element(run: Execution, index: Index) -> int:
    source, indices, target = _indexed_views(run)
    dim, dtype = run.param(0), target.dtype
    value = target.bits(run.read, index)
    # Only along `dim` do elements go to this one, in ascending order, as row-major order has it.
    for i in range(source.sizes[dim]):
        at = (*index[:dim], i, *index[dim + 1 :])
        if indices.bits(run.read, at) != index[dim]:
            continue
        new = source.bits(run.read, at)
        value = _added(dtype, value, new) if run.flag("ACCUMULATE") else new
    return value


def _added(dtype: DType, old: int, new: int) -> int:
    a, b = softvector.load(dtype, old), softvector.load(dtype, new)
    total = (a + b) & 0xFFFF_FFFF if dtype is DType.INT32 else softfloat.fma(a, _ONE, b)
    return softvector.store(dtype, total)


@dataclass(frozen=True)
class _Operation:
    """How an opcode's destination is found and one element of it computed."""

    destination: Callable[[Execution], View]
    element: Callable[[Execution, Index], int]


_OPERATIONS: dict[Opcode, _Operation] = {
    Opcode.MATMUL: _Operation(lambda run: _matmul_views(run)[2], _matmul_element),
    Opcode.VECTOR: _Operation(_vector_destination, _vector_element),
    Opcode.COPY: _Operation(
        lambda run: _copy_views(run)[1],
        lambda run, index: _copy_views(run)[0].bits(run.read, index),
    ),
    Opcode.FILL: _Operation(_fill_destination, lambda run, _: run.param(1)),
    Opcode.SYNC: _Operation(_sync_destination, lambda run, _: run.param(0)),
    Opcode.GATHER: _Operation(lambda run: _indexed_views(run)[2], _gather_element),
    Opcode.SCATTER: _Operation(lambda run: _indexed_views(run)[2], _scatter_element),
}
"""Opcodes that write; NOP and FENCE have no destination."""
