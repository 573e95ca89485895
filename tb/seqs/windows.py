# SPDX-License-Identifier: Apache-2.0
"""MATMUL with windows: random ones, those with one thing wrong, and those on memory that fails."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from driver.isa import (
    DTYPE_BYTES,
    FLAGS,
    WINDOW_BYTES,
    WINDOW_GROUP,
    WINDOW_RANK,
    DType,
    Opcode,
    Packet,
    WindowDescriptor,
    flag_word,
)
from tb.seqs.arena import Arena, strides

_LINE = 64
_STRIDES = (0, 1, 1, 1, 2, 3, 7, 12)
_RESERVED = (*range(44, 64, 4), *range(92, WINDOW_BYTES, 4))
_SHAPE = (2, 3, 4)
"""Batch, rows and columns of each operand of a product that is made wrong."""


def _factors(rng: random.Random, number: int) -> tuple[int, ...]:
    """Three factors of the number, in any order."""
    found = []
    for _ in range(WINDOW_GROUP - 1):
        factor = rng.choice([d for d in range(1, number + 1) if number % d == 0])
        found.append(factor)
        number //= factor
    found.append(number)
    rng.shuffle(found)
    return tuple(found)


def place_window(
    arena: Arena, shape: tuple[int, int, int], dtype: DType, *, source: bool
) -> tuple[int, WindowDescriptor]:
    """A window of [batch, rows, columns] on random data: its descriptor's address, and itself.

    A source overlaps itself, repeats and leaves gaps.
    """
    rng, width = arena.rng, DTYPE_BYTES[dtype]
    batch, rows, columns = shape
    sizes = (batch, *_factors(rng, rows), *_factors(rng, columns))
    if source:
        steps = tuple(rng.choice(_STRIDES) for _ in range(WINDOW_RANK))
    else:
        steps = strides(rng, sizes, broadcast=False)
    span = sum((size - 1) * step for size, step in zip(sizes, steps, strict=True)) + 1
    base = arena.operand(span * width, width, source=source)
    arena.fill(base, span * width, dtype)
    window = WindowDescriptor(base, dtype, sizes, steps)
    at = arena.place(WINDOW_BYTES, _LINE)
    arena.contents.append((at, window.pack()))
    return at, window


# ---------------------------------------------------------------------- one thing wrong
def _product(arena: Arena) -> Packet:
    """A product of three windows, whose sums start from a fourth."""
    batch, side, depth = _SHAPE
    shapes = ((batch, side, depth), (batch, depth, side), (batch, side, side))
    names = ("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC", "ACCUMULATE")
    a, b = (place_window(arena, shape, DType.FP32, source=True)[0] for shape in shapes[:2])
    start, _ = place_window(arena, shapes[2], DType.FP32, source=True)
    c, _ = place_window(arena, shapes[2], DType.FP32, source=False)
    params = (side, depth, side, batch, 0, 0, start & 0xFFFF_FFFF, start >> 32)
    return Packet(Opcode.MATMUL, flag_word(DType.FP32, DType.FP32, *names), a, b, c, params)


def _windowed(arena: Arena, change: Callable[[bytearray, random.Random], None]) -> Packet:
    """The product with bytes of one of its windows changed."""
    packet = _product(arena)
    which = arena.rng.randrange(4)
    start = packet.params[6] | packet.params[7] << 32
    address = (packet.src1, packet.src2, packet.dst, start)[which]
    for number, (at, data) in enumerate(arena.contents):
        if at == address:
            raw = bytearray(data)
            change(raw, arena.rng)
            arena.contents[number] = (at, bytes(raw))
    return packet


def _patch(offsets: tuple[int, ...], value: Callable[[int], int]) -> Callable[..., None]:
    """Replaces the 32-bit word at one of the offsets by a function of it."""

    def change(raw: bytearray, rng: random.Random) -> None:
        at = rng.choice(offsets)
        word = value(int.from_bytes(raw[at : at + 4], "little"))
        raw[at : at + 4] = (word & 0xFFFF_FFFF).to_bytes(4, "little")

    return change


def _wrapping(arena: Arena, at: int, sizes: tuple[int, ...]) -> Packet:
    """The product with three sizes of A's window, from word `at` on, whose product is that of the
    packet if it is formed in 32 bits."""
    packet = _product(arena)
    (number,) = (i for i, (address, _) in enumerate(arena.contents) if address == packet.src1)
    raw = bytearray(arena.contents[number][1])
    struct.pack_into("<3I", raw, at, *sizes)
    arena.contents[number] = (packet.src1, bytes(raw))
    return packet


def _flagged(arena: Arena, *, on: str = "", off: str = "") -> Packet:
    """The product with a flag set or cleared."""
    packet = _product(arena)
    flags = packet.flags | (FLAGS[on].mask if on else 0)
    return replace(packet, flags=flags & ~(FLAGS[off].mask if off else 0))


def _repeating_destination(dimension: int, _: Packet, arena: Arena) -> Packet:
    """The product with a destination that is dense but for one dimension, which repeats."""
    batch, side = _SHAPE[:2]
    packet = _product(arena)
    base = arena.place(_LINE * _LINE, _LINE)
    row = dimension if dimension in range(1, 1 + WINDOW_GROUP) else WINDOW_GROUP
    column = max(dimension, 1 + WINDOW_GROUP)
    sizes, steps = [1] * WINDOW_RANK, [0] * WINDOW_RANK
    for at, size, step in ((0, batch, side * side), (row, side, side), (column, side, 1)):
        sizes[at], steps[at] = size, step
    steps[dimension] = 0
    at = arena.place(WINDOW_BYTES, _LINE)
    window = WindowDescriptor(base, DType.FP32, tuple(sizes), tuple(steps))
    arena.contents.append((at, window.pack()))
    return replace(packet, dst=at)


def _other_size(dimension: int, _: Packet, arena: Arena) -> Packet:
    return _windowed(arena, _patch(_SIZES[dimension : dimension + 1], lambda size: size + 1))


def _reserved(at: int, _: Packet, arena: Arena) -> Packet:
    return _windowed(arena, _patch((at,), lambda _: 1 << arena.rng.randrange(32)))


_WRAPS = (1 << 31) + 1
"""Twice that is 2 in 32 bits."""
_SIZES = tuple(range(16, 16 + 4 * WINDOW_RANK, 4))
WINDOW_BREAKS: dict[str, Callable[[Packet, Arena], Packet]] = {
    **{f"window, reserved word at {at}": partial(_reserved, at) for at in _RESERVED},
    "window, other type": lambda _, a: _windowed(a, _patch((8,), lambda _: DType.INT32)),
    "window, rank 6": lambda _, a: _windowed(a, _patch((12,), lambda _: 6)),
    "window, rank 8": lambda _, a: _windowed(a, _patch((12,), lambda _: 8)),
    "window, no size": lambda _, a: _windowed(a, _patch(_SIZES, lambda _: 0)),
    **{
        f"window, other size of dimension {at}": partial(_other_size, at)
        for at in range(WINDOW_RANK)
    },
    "window, far size": lambda _, a: _windowed(a, _patch(_SIZES, lambda size: size + (1 << 31))),
    "window, rows that wrap": lambda _, a: _wrapping(a, 20, (1, 2, _WRAPS)),
    "window, columns that wrap": lambda _, a: _wrapping(a, 32, (2, _WRAPS, 2)),
    "window, odd base": lambda _, a: _windowed(a, _patch((0,), lambda word: word | 2)),
    "window, far base": lambda _, a: _windowed(a, _patch((4,), lambda _: 1 << 30)),
    **{
        f"window, destination that repeats in dimension {at}": partial(_repeating_destination, at)
        for at in range(WINDOW_RANK)
    },
    "window, transposed A": lambda _, a: _flagged(a, on="TRANS_A"),
    "window, transposed B": lambda _, a: _flagged(a, on="TRANS_B"),
    "window, start without sums": lambda _, a: _flagged(a, off="ACCUMULATE"),
    "window, address of no start": lambda _, a: _flagged(a, off="SRC3_DESC"),
    "window, reserved parameter": lambda _, a: replace(
        (p := _product(a)), params=(*p.params[:5], 1, *p.params[6:])
    ),
    "window of a fill": lambda _, a: Packet(
        Opcode.FILL,
        flag_word(DType.FP32, DType.FP32, "DST_DESC"),
        dst=place_window(a, _SHAPE, DType.FP32, source=False)[0],
        params=(0, 1),
    ),
}
"""Ways to be wrong; the packet that they are given is not used."""


def aligned_product(arena: Arena, side: int) -> tuple[Packet, list[int]]:
    """A product of four windows of side × side on lines of their own; where their data are, then
    where the second halves of the windows of A and C are."""
    size_bytes = 4 * side * side
    sizes, steps = (1, 1, side // 4, 4, 1, side, 1), (0, 0, 4 * side, side, 0, 1, 0)
    data, windows = [], []
    for _ in range(4):
        base = arena.place(size_bytes, _LINE)
        arena.fill(base, size_bytes)
        at = arena.place(WINDOW_BYTES, _LINE)
        arena.contents.append((at, WindowDescriptor(base, DType.FP32, sizes, steps).pack()))
        data.append(base)
        windows.append(at)
    names = ("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC", "ACCUMULATE")
    a, b, start, c = windows
    params = (side, side, side, 1, 0, 0, start & 0xFFFF_FFFF, start >> 32)
    packet = Packet(Opcode.MATMUL, flag_word(DType.FP32, DType.FP32, *names), a, b, c, params)
    return packet, [*data, a + _LINE, c + _LINE]
