# SPDX-License-Identifier: Apache-2.0
"""The third opinion on one packet: an element of its destination, by integers, from its memory.

golden.judge decides by an op's tensors; this module decides by a packet's bytes which of RTL and
cmodel executed it wrongly. Reads packets and descriptors by driver.isa's layout alone;
shares no code with the cmodel, and knows nothing of lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from driver.isa import (
    DESCRIPTOR_BYTES,
    DTYPE_BYTES,
    WINDOW_BYTES,
    WINDOW_GROUP,
    WINDOW_RANK,
    Descriptor,
    DType,
    Opcode,
    Packet,
    WindowDescriptor,
    begins_window,
    flag_field,
)
from driver.isa.image import LINE_BYTES, unpack
from driver.isa.micro import Reduce, VectorProgram
from driver.isa.types import INT4_ROWS
from driver.results import Blame
from driver.runtime.vector_programs import named_by
from golden import softfloat, softvector

ReadMemory = Callable[[int, int], bytes]
"""(address, bytes) → what lay there before the packet ran."""
Index = tuple[int, ...]

_IMM0 = 2
_ONE = 0x3F80_0000
_MINUS_ZERO = 0x8000_0000
_INT4_BITS = 4
_INT4_ZERO = 8


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
    result: int = 0
    """Which of its results is looked at."""
    before: Sequence[Packet] = ()
    """The packets of the op that ran before it: they may load programs."""

    def flag(self, name: str) -> int:
        """A field of the flags."""
        return flag_field(self.packet.flags, name)

    def param(self, number: int) -> int:
        """A parameter."""
        return self.packet.params[number] if number < len(self.packet.params) else 0

    def view(self, name: str, address: int, dtype: int, sizes: tuple[int, ...] | None) -> View:
        """Operand `name`: by its descriptor or window, or dense with `sizes`."""
        if self.flag(f"{name}_DESC"):
            return replace(self.described(address), dtype=DType(dtype))
        assert sizes is not None
        strides = tuple(prod(sizes[d + 1 :]) for d in range(len(sizes)))
        return View(address, DType(dtype), sizes, strides)

    def described(self, address: int) -> View:
        """What the descriptor or the window at an address describes."""
        found: Descriptor | WindowDescriptor
        data = self.read(address, DESCRIPTOR_BYTES)
        if begins_window(data):
            found = WindowDescriptor.unpack(self.read(address, WINDOW_BYTES))
        else:
            found = Descriptor.unpack(data)
        return View(found.base, DType(found.dtype), found.sizes, found.strides)


@dataclass(frozen=True)
class _Matrix:
    """An operand of MATMUL: a view of [batch, row, column], of its transpose, or of a window."""

    view: View
    is_transposed: bool

    def index(self, batch: int, row: int, column: int) -> Index:
        """Where the view has an element."""
        if len(self.view.sizes) != WINDOW_RANK:
            return (batch, column, row) if self.is_transposed else (batch, row, column)
        rows, columns = (self.view.sizes[at : at + WINDOW_GROUP] for at in (1, 1 + WINDOW_GROUP))
        return (batch, *_digits(row, rows), *_digits(column, columns))

    def place(self, index: Index) -> Index:
        """Batch, row and column of an element of the view."""
        if len(index) != WINDOW_RANK:
            return index
        sizes = self.view.sizes
        row, column = 0, 0
        for at in range(WINDOW_GROUP):
            row = row * sizes[1 + at] + index[1 + at]
            column = column * sizes[1 + WINDOW_GROUP + at] + index[1 + WINDOW_GROUP + at]
        return (index[0], row, column)

    def bits(self, read: ReadMemory, batch: int, row: int, column: int) -> int:
        """An element."""
        return self.view.bits(read, self.index(batch, row, column))


def _digits(number: int, sizes: tuple[int, ...]) -> Index:
    """A number in mixed radix, the last digit the fastest."""
    digits = []
    for size in reversed(sizes):
        digits.append(number % size)
        number //= size
    return tuple(reversed(digits))


def destinations(packet: Packet, read: ReadMemory, before: Sequence[Packet] = ()) -> list[View]:
    """Where the packet writes: one tensor, or each result of a VECTOR with several. `before`: the
    packets of its op that have run."""
    run = Execution(packet, read, before=before)
    return _OPERATIONS[Opcode(packet.opcode)].destinations(run)


def third_opinion_packet(
    packet: Packet,
    read: ReadMemory,
    index: Index,
    result: int = 0,
    before: Sequence[Packet] = (),
) -> int:
    """Bits of element `index` of a destination after the packet; `before` as for destinations."""
    run = Execution(packet, read, result, before)
    return _OPERATIONS[Opcode(packet.opcode)].element(run, index)


def blame_packet(
    packet: Packet,
    read: ReadMemory,
    index: Index,
    cmodel: int,
    rtl: int,
    *,
    result: int = 0,
    before: Sequence[Packet] = (),
) -> tuple[Blame, int]:
    """Whose bits of an element of a destination are wrong, and the right ones.

    The RTL when neither agrees with the third opinion. `before` as for destinations.
    """
    right = third_opinion_packet(packet, read, index, result, before)
    return ("cmodel" if rtl == right != cmodel else "rtl"), right


# ---------------------------------------------------------------------- MATMUL
def _matrix(
    run: Execution,
    name: str,
    address: int,
    shape: tuple[int, int, int],
    trans: str = "",
    *,
    dtype: int | None = None,
) -> _Matrix:
    """Operand `name`, of [batch, rows, columns]; `trans`: the flag that says it is transposed."""
    if dtype is None:
        dtype = run.flag("DST_DTYPE" if name in ("SRC3", "DST") else "SRC_DTYPE")
    batch, rows, columns = shape
    swapped = bool(trans and run.flag(trans))
    stored = (batch, columns, rows) if swapped else shape
    return _Matrix(run.view(name, address, dtype, stored), swapped)


class _Int4Matrix:
    """The second factor of MATMUL with INT4_GROUP: weights of four bits, and scales."""

    def __init__(self, run: Execution) -> None:
        _, k, n, batch = (run.param(i) for i in range(4))
        self._group = 1 << run.flag("INT4_GROUP")
        self._dtype = DType(run.flag("SRC_DTYPE"))
        address = run.param(6) | run.param(7) << 32
        words = (batch, -(-k // INT4_ROWS), n)
        self._words = _matrix(run, "SRC2", run.packet.src2, words, "TRANS_B", dtype=DType.INT32)
        scales = (batch, -(-k // self._group), n)
        self._scales = _matrix(run, "SRC3", address, scales, dtype=self._dtype)

    def bits(self, read: ReadMemory, batch: int, row: int, column: int) -> int:
        """A weight, in the type of the sources."""
        word = self._words.bits(read, batch, row // INT4_ROWS, column)
        number = (word >> row % INT4_ROWS * _INT4_BITS & 15) - _INT4_ZERO
        scale = self._scales.bits(read, batch, row // self._group, column)
        wide = softvector.load(self._dtype, scale)
        product = softfloat.fma(softfloat.from_int(number), wide, _MINUS_ZERO)
        return softvector.store(self._dtype, product)


def _matmul_operands(run: Execution) -> tuple[_Matrix, _Matrix | _Int4Matrix, _Matrix]:
    m, k, n, batch = (run.param(i) for i in range(4))
    packet = run.packet
    right = (
        _Int4Matrix(run)
        if run.flag("INT4_GROUP")
        else _matrix(run, "SRC2", packet.src2, (batch, k, n), "TRANS_B")
    )
    return (
        _matrix(run, "SRC1", packet.src1, (batch, m, k), "TRANS_A"),
        right,
        _matrix(run, "DST", packet.dst, (batch, m, n)),
    )


def _matmul_element(run: Execution, index: Index) -> int:
    a, b, c = _matmul_operands(run)
    batch, row, column = c.place(index)
    terms = range(run.param(1))
    start = None
    if run.flag("SRC3_DESC") and not run.flag("INT4_GROUP"):
        address = run.param(6) | run.param(7) << 32
        third = _matrix(run, "SRC3", address, (run.param(3), run.param(0), run.param(2)))
        start = third.bits(run.read, batch, row, column)
    elif run.flag("ACCUMULATE"):
        start = c.view.bits(run.read, index)
    left = [a.bits(run.read, batch, row, k) for k in terms]
    right = [b.bits(run.read, batch, k, column) for k in terms]
    return softfloat.chain(left, right, start, a.view.dtype, c.view.dtype)


# ---------------------------------------------------------------------- VECTOR
def _vector_program(run: Execution) -> VectorProgram:
    line = run.param(0)
    for packet in reversed(run.before):
        if packet.opcode == Opcode.LOAD and packet.params[0] == line:
            return unpack(run.read(packet.src1, packet.params[1] * LINE_BYTES))
    program = named_by(line)
    assert program is not None, f"no program is known by the number {line}"
    return program


def _vector_views(run: Execution) -> tuple[list[View], list[View]]:
    """Sources and results."""
    program, packet = _vector_program(run), run.packet
    if run.flag("OPERAND_LIST"):
        count = program.sources + program.results
        views = [run.described(packet.src1 + at * DESCRIPTOR_BYTES) for at in range(count)]
        return views[: program.sources], views[program.sources :]
    addresses = (packet.src1, packet.src2, run.param(6) | run.param(7) << 32)
    types = (run.flag("SRC_DTYPE"), run.flag("SRC2_DTYPE"), run.flag("SRC3_DTYPE"))
    dense = (run.param(1),)
    sources = [
        run.view(f"SRC{i + 1}", addresses[i], types[i], dense) for i in range(program.sources)
    ]
    return sources, [run.view("DST", packet.dst, run.flag("DST_DTYPE"), dense)]


def _vector_element(run: Execution, index: Index) -> int:
    program = _vector_program(run)
    sources, results = _vector_views(run)
    imms = [run.param(_IMM0 + i) for i in range(6 if run.flag("OPERAND_LIST") else 4)]

    def word(at: Index) -> int:
        operands = [softvector.load(x.dtype, x.bits(run.read, at)) for x in sources]
        return softvector.run(program, operands, imms, at[-1])[run.result]

    if program.reduce is Reduce.NONE:
        result = word(index)
    else:
        row = range(sources[0].sizes[-1])
        result = softvector.reduce(program.reduce, [word((*index[:-1], i)) for i in row])
    return softvector.store(results[run.result].dtype, result)


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
    """How an opcode's destinations are found and one element computed."""

    destinations: Callable[[Execution], list[View]]
    element: Callable[[Execution, Index], int]


_OPERATIONS: dict[Opcode, _Operation] = {
    Opcode.MATMUL: _Operation(lambda run: [_matmul_operands(run)[2].view], _matmul_element),
    Opcode.VECTOR: _Operation(lambda run: _vector_views(run)[1], _vector_element),
    Opcode.COPY: _Operation(
        lambda run: [_copy_views(run)[1]],
        lambda run, index: _copy_views(run)[0].bits(run.read, index),
    ),
    Opcode.FILL: _Operation(lambda run: [_fill_destination(run)], lambda run, _: run.param(1)),
    Opcode.SYNC: _Operation(lambda run: [_sync_destination(run)], lambda run, _: run.param(0)),
    Opcode.GATHER: _Operation(lambda run: [_indexed_views(run)[2]], _gather_element),
    Opcode.SCATTER: _Operation(lambda run: [_indexed_views(run)[2]], _scatter_element),
}
"""Opcodes that write memory; NOP, FENCE and LOAD have no destination."""
