# SPDX-License-Identifier: Apache-2.0
"""MATMUL with weights of four bits: a scale for each group of rows, and each with one thing
wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from driver.isa import FLAGS, DType, Opcode, Packet, flag_word
from driver.isa.types import INT4_GROUPS, INT4_ROWS
from tb.seqs.arena import Arena, place_view

_GROUP = 4
_ROWS, _DEPTH, _COLUMNS = 3, 40, 6
_LONGEST_GROUP = 6
"""log2 of twice the rows of the largest array: a group of several tiles."""
_WIDE = 35
"""Columns of more than one tile of any array."""
_TWO_BLOCKS = (60, 70)
"""Rows and columns that the smallest array does in two blocks."""


def _dense(arena: Arena, dtype: DType, rows: int, columns: int) -> int:
    return place_view(arena, dtype, (1, rows, columns), (rows * columns, columns, 1))


def _product(arena: Arena, **changes: int) -> Packet:
    """A legal product whose words and scales have descriptors; `changes`: sizes that are other."""
    sizes = {"words": -(-_DEPTH // INT4_ROWS), "scales": -(-_DEPTH // (1 << _GROUP)), **changes}
    kind = DType(sizes.get("kind", DType.INT32))
    factor = DType(sizes.get("factor", DType.BF16))
    a = _dense(arena, DType.BF16, _ROWS, _DEPTH)
    words = _dense(arena, kind, sizes["words"], sizes.get("columns", _COLUMNS))
    scales = _dense(arena, factor, sizes["scales"], _COLUMNS)
    c = _dense(arena, DType.BF16, _ROWS, _COLUMNS)
    flags = flag_word(DType.BF16, DType.BF16, "SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC")
    flags |= _GROUP << FLAGS["INT4_GROUP"].lsb
    params = (_ROWS, _DEPTH, _COLUMNS, 1, 0, 0, scales & 0xFFFF_FFFF, scales >> 32)
    return Packet(Opcode.MATMUL, flags, a, words, c, params)


def _field(packet: Packet, name: str, value: int) -> Packet:
    field = FLAGS[name]
    return replace(packet, flags=packet.flags & ~field.mask | value << field.lsb)


def _direct_scales(arena: Arena, address: int) -> Packet:
    """Scales that are no descriptor, at an address."""
    packet = _field(_product(arena), "SRC3_DESC", 0)
    return replace(
        packet, params=(*packet.params[:6], address & 0xFFFF_FFFF, address >> 32 & 0xFFFF_FFFF)
    )


INT4_BREAKS: dict[str, Callable[[Packet, Arena], Packet]] = {
    "int4, group of 2 rows": lambda _, a: _field(_product(a), "INT4_GROUP", 1),
    "int4, group of 4 rows": lambda _, a: _field(_product(a), "INT4_GROUP", 2),
    "int4, scales without groups": lambda _, a: _field(_product(a), "INT4_GROUP", 0),
    "int4, other group": lambda _, a: _field(_product(a), "INT4_GROUP", 3),
    "int4, sources of int8": lambda _, a: _field(
        _field(_product(a), "SRC_DTYPE", DType.INT8), "DST_DTYPE", DType.INT32
    ),
    "int4, words too few": lambda _, a: _product(a, words=4),
    "int4, words as rows": lambda _, a: _product(a, words=_DEPTH),
    "int4, words of another type": lambda _, a: _product(a, kind=DType.BF16),
    "int4, words transposed": lambda _, a: _field(_product(a), "TRANS_B", 1),
    "int4, columns too few": lambda _, a: _product(a, columns=_COLUMNS - 1),
    "int4, scales too many": lambda _, a: _product(a, scales=4),
    "int4, scales of another type": lambda _, a: _product(a, factor=DType.FP32),
    "int4, scales misaligned": lambda _, a: _direct_scales(a, a.place(64, 64) + 1),
    "int4, scales out of range": lambda _, a: _direct_scales(a, (a.limit | 1 << 40) & ~63),
    "int4, reserved parameter": lambda _, a: replace(
        (p := _product(a)), params=(*p.params[:4], 1, *p.params[5:])
    ),
    "int4 of a copy": lambda _, a: Packet(
        Opcode.COPY,
        flag_word(DType.FP32, DType.FP32) | _GROUP << FLAGS["INT4_GROUP"].lsb,
        a.place(64, 4),
        0,
        a.place(64, 4),
        (4,),
    ),
}
"""Ways to be wrong; the packet that they are given is not used."""


def scale_groups(arena: Arena) -> Iterator[Packet]:
    """Products of two groups and a half, of less than a tile of the array, one, and several; one of
    two blocks of columns, whose last tile along k takes no new scales. All numbers are between ½
    and 8 in size, so that no infinity or NaN hides a wrong scale."""
    for group in INT4_GROUPS[: INT4_GROUPS.index(_LONGEST_GROUP) + 1]:
        yield _grouped(arena, group, 5 << group - 1, _ROWS, _WIDE)
    yield _grouped(arena, _GROUP, 3 << _GROUP, *_TWO_BLOCKS)


def _grouped(arena: Arena, group: int, depth: int, rows: int, columns: int) -> Packet:
    a = _numbers(arena, rows * depth)
    scales = _numbers(arena, -(-depth >> group) * columns)
    words, c = (arena.place(4 * high * columns, 4) for high in (-(-depth // INT4_ROWS), rows))
    arena.fill(words, 4 * -(-depth // INT4_ROWS) * columns)
    flags = flag_word(DType.BF16, DType.FP32) | group << FLAGS["INT4_GROUP"].lsb
    params = (rows, depth, columns, 1, 0, 0, scales & 0xFFFF_FFFF, scales >> 32)
    return Packet(Opcode.MATMUL, flags, a, words, c, params)


def zero_weights(arena: Arena) -> Iterator[Packet]:
    """Weights of zero, added to −0. With negative scales the sums are −0, and +0 if a weight loses
    the sign of its scale; with infinite ones they are NaN, and infinite if 0 · ∞ is."""
    for scale in (b"\x80\xbf", b"\x80\x7f", b"\x80\xff"):  # −1, ∞, −∞
        packet = _grouped(arena, _GROUP, _DEPTH, _ROWS, _COLUMNS)
        sizes = packet.params[1] * _ROWS, packet.params[1] * _COLUMNS // 2, _ROWS * _COLUMNS
        scales = packet.params[6] | packet.params[7] << 32
        arena.contents += [
            (packet.src1, b"\x80\x3f" * sizes[0]),  # 1
            (packet.src2, b"\x88" * sizes[1]),  # 0
            (packet.dst, b"\0\0\0\x80" * sizes[2]),
            (scales, scale * (-(-packet.params[1] >> _GROUP) * _COLUMNS)),
        ]
        yield replace(packet, flags=packet.flags | FLAGS["ACCUMULATE"].mask)


def small_scales(arena: Arena) -> Iterator[Packet]:
    """Scales of zero, the smallest and the largest subnormal number, the smallest normal one."""
    packet = _grouped(arena, _GROUP, _DEPTH, _ROWS, _COLUMNS)
    scales = packet.params[6] | packet.params[7] << 32
    small = (b"\0\0", b"\1\0", b"\x7f\0", b"\x80\0")
    count = -(-packet.params[1] >> _GROUP) * _COLUMNS
    arena.contents.append((scales, b"".join(arena.rng.choices(small, k=count))))
    yield packet


def _numbers(arena: Arena, count: int) -> int:
    """The address of so many of BF16."""
    address = arena.place(2 * count, 2)
    highest = (0x3F, 0x40, 0xBF, 0xC0)
    data = (
        byte for _ in range(count) for byte in (arena.rng.randrange(256), arena.rng.choice(highest))
    )
    arena.contents.append((address, bytes(data)))
    return address
