# SPDX-License-Identifier: Apache-2.0
"""Commands of more elements than 16 bits count, and a product of operands that are far apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from driver.isa import DTYPE_BYTES, Descriptor, DType, Opcode, Packet, flag_word
from driver.isa.micro import PLAIN_IMMEDIATES
from driver.isa.programs import LINES
from tb.seqs.arena import Arena, place_view
from tb.seqs.streams import stream_flags, stream_packet

_MANY = (1 << 16) + 1
_BATCHES = (1 << 8) + 1
"""More than 8 bits count: each costs more cycles than a row."""
_SIDE = 8
_LINE = 64


def _data(arena: Arena, dtype: DType, count: int) -> int:
    size_bytes = DTYPE_BYTES[dtype] * count
    address = arena.place(size_bytes, _LINE)
    arena.fill(address, size_bytes)
    return address


def _described(
    arena: Arena, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...], base: int
) -> int:
    at = arena.place(_LINE, _LINE)
    arena.contents.append((at, Descriptor(base, dtype, sizes, strides).pack()))
    return at


def long_dimensions(arena: Arena) -> Iterator[Packet]:
    """A command of each kind with each of its sizes beyond 16 bits: the last elements are moved,
    added and picked as the first ones are."""
    for m, k, n, batch in (
        (_MANY, 1, 1, 1),
        (1, _MANY, 1, 1),
        (1, 1, _MANY, 1),
        (1, 1, 1, _BATCHES),
    ):
        a, b = (_data(arena, DType.INT8, batch * x * y) for x, y in ((m, k), (k, n)))
        c = _data(arena, DType.INT32, batch * m * n)
        flags = flag_word(DType.INT8, DType.INT32, "TRANS_B")
        yield Packet(Opcode.MATMUL, flags, a, b, c, (m, k, n, batch))
    yield from _moves(arena)
    yield _gather(arena)
    yield _scatter(arena)


def _moves(arena: Arena) -> Iterator[Packet]:
    """FILL and VECTOR by a count, COPY and VECTOR of rows of one element."""
    dst, value = _data(arena, DType.INT8, _MANY), arena.rng.getrandbits(8)
    yield Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT8), dst=dst, params=(_MANY, value))
    imms = [0] * PLAIN_IMMEDIATES
    src, dst = (_data(arena, DType.INT8, _MANY) for _ in range(2))
    plain = stream_flags([DType.INT8], DType.INT8, descriptors=False)
    yield stream_packet(LINES["move"], plain, [src], dst, count=_MANY, imms=imms)
    rows = (_MANY, 1)
    spread, dense, other = (
        place_view(arena, DType.INT8, rows, strides) for strides in ((2, 1), (1, 1), (1, 1))
    )
    flags = flag_word(DType.INT8, DType.INT8, "SRC1_DESC", "DST_DESC")
    yield Packet(Opcode.COPY, flags, spread, 0, dense)
    listed = stream_flags([DType.INT8], DType.INT8, descriptors=True)
    yield stream_packet(LINES["move"], listed, [spread], other, count=0, imms=imms)


def _picked(arena: Arena) -> int:
    """Indices of the last row of many, and of one that 16 bits take for another."""
    numbers = (_MANY - 1, 3, _MANY - 2)
    base = arena.place(_LINE, _LINE)
    arena.contents.append((base, b"".join(at.to_bytes(4, "little") for at in numbers)))
    return _described(arena, DType.INT32, (len(numbers),), (1,), base)


def _table(arena: Arena, count: int) -> int:
    return place_view(arena, DType.INT32, (count,), (1,))


def _gather(arena: Arena) -> Packet:
    flags = stream_flags([DType.INT32, DType.INT32], DType.INT32, descriptors=True)
    table, result = _table(arena, _MANY), _table(arena, 3)
    return Packet(Opcode.GATHER, flags, table, _picked(arena), result, (0,))


def _scatter(arena: Arena) -> Packet:
    flags = stream_flags([DType.INT32, DType.INT32], DType.INT32, descriptors=True)
    source, table = _table(arena, 3), _table(arena, _MANY)
    return Packet(Opcode.SCATTER, flags, source, _picked(arena), table, (0,))


def far_product(arena: Arena, distance: int) -> Iterator[Packet]:
    """A MATMUL of two operands so many bytes apart, both read line by line more than once: one that
    takes lines for each other by the lower bits of their addresses mixes them up."""
    sizes, strides = (1, _SIDE, _SIDE), (0, 1, 1)
    near = _data(arena, DType.FP32, prod(sizes))
    far = near + distance
    arena.fill(far, DTYPE_BYTES[DType.FP32] * prod(sizes))
    a, b = (_described(arena, DType.FP32, sizes, strides, base) for base in (near, far))
    c = _data(arena, DType.FP32, prod(sizes))
    flags = flag_word(DType.FP32, DType.FP32, "SRC1_DESC", "SRC2_DESC")
    packet = Packet(Opcode.MATMUL, flags, a, b, c, (_SIDE, _SIDE, _SIDE, 1))
    yield packet
    yield replace(packet, src1=b, src2=a)
