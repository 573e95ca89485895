# SPDX-License-Identifier: Apache-2.0
"""Random packets with operands of every kind: direct, transposed, strided, broadcast, misfit.

Legal by construction; `tb.seqs.broken` makes illegal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from driver.isa import (
    DTYPE_BYTES,
    FLAGS,
    MATMUL_DTYPES,
    MAX_RANK,
    DType,
    Opcode,
    Packet,
    flag_word,
)
from driver.isa.types import INT4_ROWS
from tb.seqs.arena import Arena, place_operand, place_view, strides
from tb.seqs.loading import load, vector_of_any
from tb.seqs.streams import gather, scatter, vector
from tb.seqs.windows import place_window


def matmul(arena: Arena, longest: int) -> Packet:
    """A random MATMUL with sizes up to `longest`. Random bits are NaN and infinity now and then."""
    rng = arena.rng
    source, result = rng.choice(MATMUL_DTYPES)
    m, k, n = (rng.randint(1, longest) for _ in range(3))
    batch = rng.choice((1, 1, 1, 2, 3))
    flags = [name for name in ("ACCUMULATE", "IRQ") if rng.random() < 0.3]

    def factor(name: str, trans: str, shape: tuple[int, int, int], dtype: DType = source) -> int:
        """A source: direct, described or a window; its address."""
        if rng.random() < 0.3:
            flags.append(name)
            return place_window(arena, shape, dtype, source=True)[0]
        if trans and rng.random() < 0.3:
            flags.append(trans)
            shape = (shape[0], shape[2], shape[1])
        operand = place_operand(arena, shape, dtype, source=True)
        flags.extend([name] if operand.descriptor else [])
        return operand.address

    a = factor("SRC1_DESC", "TRANS_A", (batch, m, k))
    shape, third, group = (batch, m, n), 0, 0
    if source is not DType.INT8 and rng.random() < 0.3:
        group = rng.choice((3, 3, 4, 5, 6, 15))
        b = factor("SRC2_DESC", "TRANS_B", (batch, -(-k // INT4_ROWS), n), DType.INT32)
        third = factor("SRC3_DESC", "", (batch, -(-k // (1 << group)), n))
    else:
        b = factor("SRC2_DESC", "TRANS_B", (batch, k, n))
        if "ACCUMULATE" in flags and rng.random() < 0.5:
            third = _start(arena, shape, result)
            flags.append("SRC3_DESC")
    if rng.random() < 0.3:
        flags.append("DST_DESC")
        c = place_window(arena, shape, result, source=False)[0]
    else:
        operand = place_operand(arena, shape, result, source=False)
        flags += ["DST_DESC"] if operand.descriptor else []
        c = operand.address
    word = flag_word(source, result, *flags) | group << FLAGS["INT4_GROUP"].lsb
    params = (m, k, n, batch, 0, 0, third & 0xFFFF_FFFF, third >> 32)
    return Packet(Opcode.MATMUL, word, a, b, c, params)


def _start(arena: Arena, shape: tuple[int, int, int], dtype: DType) -> int:
    """Where the sums of a product start: the address of a descriptor or of a window."""
    if arena.rng.random() < 0.5:
        return place_window(arena, shape, dtype, source=True)[0]
    steps = strides(arena.rng, shape, broadcast=True)
    return place_view(arena, dtype, shape, steps, source=True)


def copy(arena: Arena, longest: int) -> Packet:
    """A random COPY of up to 5 dimensions."""
    rng = arena.rng
    dtype = rng.choice(list(DType))
    rank = rng.randint(1, MAX_RANK)
    most = (longest // 3, longest // 3, longest // 3, 6, 4)[rank - 1]
    sizes = tuple(rng.randint(1, max(2, most)) for _ in range(rank))
    src = place_operand(arena, sizes, dtype, source=True)
    dst = place_operand(arena, sizes, dtype, source=False)
    flags = ["SRC1_DESC"] if src.descriptor else []
    flags += ["DST_DESC"] if dst.descriptor else []
    count = 0 if flags else prod(sizes)
    word = flag_word(dtype, dtype, *flags, *(["IRQ"] if rng.random() < 0.3 else []))
    return Packet(Opcode.COPY, word, src.address, 0, dst.address, (count,))


def large_sums(arena: Arena) -> Iterator[Packet]:
    """A MATMUL that adds to a result of several blocks along rows and along columns."""
    rows, depth, columns = 200, 3, 300
    sizes = (rows * depth, depth * columns, 4 * rows * columns)
    a, b, c = (arena.place(size, 4) for size in sizes)
    for address, size in zip((a, b, c), sizes, strict=True):
        arena.fill(address, size)
    flags = flag_word(DType.INT8, DType.INT32, "ACCUMULATE")
    yield Packet(Opcode.MATMUL, flags, a, b, c, (rows, depth, columns, 1))


def sums_from_a_column(arena: Arena) -> Iterator[Packet]:
    """A MATMUL whose sums start from one column for all columns, of dense operands that are read
    once: nothing but that column is kept."""
    rows, depth, columns = 5, 4, 7
    a, b, c = (arena.place(4 * size, 4) for size in (rows * depth, depth * columns, rows * columns))
    for address, size in zip((a, b), (rows * depth, depth * columns), strict=True):
        arena.fill(address, 4 * size)
    start = place_view(arena, DType.FP32, (1, rows, columns), (0, 1, 0))
    flags = flag_word(DType.FP32, DType.FP32, "ACCUMULATE", "SRC3_DESC")
    params = (rows, depth, columns, 1, 0, 0, start & 0xFFFF_FFFF, start >> 32)
    yield Packet(Opcode.MATMUL, flags, a, b, c, params)


def long_sum(arena: Arena, count: int) -> Packet:
    """A MATMUL of a row and a column of so many numbers: it writes one, when all are read."""
    row, column = (arena.place(4 * count, 4) for _ in range(2))
    arena.fill(row, 4 * count)
    arena.fill(column, 4 * count)
    flags = flag_word(DType.FP32, DType.FP32)
    return Packet(Opcode.MATMUL, flags, row, column, arena.place(4, 4), (1, count, 1, 1))


def plain_copy(arena: Arena, size_bytes: int, alignment: int = 64) -> Packet:
    """A COPY of so many random bytes between places of its own."""
    src, dst = (arena.place(size_bytes, alignment) for _ in range(2))
    arena.fill(src, size_bytes)
    return Packet(Opcode.COPY, flag_word(DType.INT8, DType.INT8), src, 0, dst, (size_bytes,))


def long_copy(arena: Arena) -> Packet:
    """A COPY of more bytes than one request to the memory controller can move, at odd addresses."""
    count = (1 << 16) + arena.rng.randint(1, 1 << 13)
    src, dst = (arena.place(count, 1) for _ in range(2))
    arena.fill(src, count)
    arena.fill(dst, count)
    word = flag_word(DType.INT8, DType.INT8)
    return Packet(Opcode.COPY, word, src, 0, dst, (count,))


def offset_copies(arena: Arena, beat: int) -> Iterator[Packet]:
    """Runs of about a beat of bytes from every offset in a beat to every offset in a beat."""
    for run in (2, beat - 1, beat + 1):
        room = 4 * beat
        sizes = (beat, beat, run)
        strides = (beat * room + 1, room, 1), (beat * (room + 1), room + 1, 1)
        src, dst = (place_view(arena, DType.INT8, sizes, order) for order in strides)
        word = flag_word(DType.INT8, DType.INT8, "SRC1_DESC", "DST_DESC")
        yield Packet(Opcode.COPY, word, src, 0, dst)


def repeating_copies(arena: Arena) -> Iterator[Packet]:
    """Sources that repeat along each of three short dimensions."""
    for steps in ((0, 2, 1), (2, 0, 1), (2, 1, 0)):
        src = place_view(arena, DType.INT8, (2, 2, 2), steps)
        dst = place_view(arena, DType.INT8, (2, 2, 2), (4, 2, 1))
        word = flag_word(DType.INT8, DType.INT8, "SRC1_DESC", "DST_DESC")
        yield Packet(Opcode.COPY, word, src, 0, dst)


def fill(arena: Arena, longest: int) -> Packet:
    """A random FILL."""
    rng = arena.rng
    dtype = rng.choice([dtype for dtype in DType if dtype is not DType.INT64])
    sizes = tuple(rng.randint(1, longest) for _ in range(rng.randint(1, 3)))
    dst = place_operand(arena, sizes, dtype, source=False)
    value = rng.getrandbits(8 * DTYPE_BYTES[dtype])
    word = flag_word(DType.FP32, dtype, *(["DST_DESC"] if dst.descriptor else []))
    return Packet(
        Opcode.FILL, word, 0, 0, dst.address, (0 if dst.descriptor else prod(sizes), value)
    )


def fill_words(arena: Arena, count: int) -> Packet:
    """A FILL of so many words, of a random number."""
    dst, value = arena.place(4 * count, 4), arena.rng.getrandbits(32)
    flags = flag_word(DType.FP32, DType.INT32)
    return Packet(Opcode.FILL, flags, dst=dst, params=(count, value))


def sync(arena: Arena, longest: int) -> Packet:
    """A SYNC somewhere."""
    return Packet(
        Opcode.SYNC, dst=arena.operand(4, 4), params=(arena.rng.getrandbits(32) % (longest << 24),)
    )


def nop(arena: Arena, longest: int) -> Packet:
    """A NOP or a FENCE, with or without its interrupt."""
    opcode = arena.rng.choice((Opcode.NOP, Opcode.FENCE))
    return Packet(opcode, FLAGS["IRQ"].mask if arena.rng.randint(0, longest) % 2 else 0)


MAKERS: tuple[tuple[Callable[[Arena, int], Packet], int], ...] = (
    (matmul, 4),
    (copy, 3),
    (fill, 2),
    (sync, 1),
    (nop, 1),
    (vector, 4),
    (load, 2),
    (vector_of_any, 4),
    (gather, 2),
    (scatter, 2),
)
"""Kinds of packet and how often they come."""


def legal(arena: Arena, longest: int) -> Packet:
    """A random legal packet of any kind."""
    makers = [maker for maker, _ in MAKERS]
    weights = [weight for _, weight in MAKERS]
    return arena.rng.choices(makers, weights)[0](arena, longest)
