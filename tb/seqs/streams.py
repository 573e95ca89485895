# SPDX-License-Identifier: Apache-2.0
"""Random VECTOR, GATHER and SCATTER packets: any program, any types, any views.

Legal by construction. Sources are random bits: a program meets NaN and infinity now and then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from math import prod

from driver.isa import (
    DTYPE_BYTES,
    FLAGS,
    MAX_RANK,
    Descriptor,
    DType,
    Opcode,
    Packet,
)
from driver.isa.codec import flag_word
from driver.isa.micro import (
    PLAIN_IMMEDIATES,
    PLAIN_SOURCES,
    REDUCTION_LANES,
    Reduce,
    VectorProgram,
)
from driver.isa.programs import LINES, PROGRAMS
from driver.isa.types import INDEX_DTYPES, SCATTER_ADD_DTYPES
from tb.seqs.arena import Arena, place_view, strides

_TYPE_FLAGS = ("SRC_DTYPE", "SRC2_DTYPE", "SRC3_DTYPE")
_DESC_FLAGS = ("SRC1_DESC", "SRC2_DESC", "SRC3_DESC")
_NOTABLE = (0x3F80_0000, 0xBF80_0000, 0x4000_0000, 1, 0xFFFF_FFFF, 7)
"""Immediates that mean something to a float or to an integer program."""
_OF_EACH_SIZE = (DType.INT8, DType.BF16, DType.INT32, DType.INT64)
_FARTHEST = 5
"""More than any distance at which what lies between is read as well."""


def stream_flags(types: list[DType], result: DType, *, descriptors: bool) -> int:
    """The flags word for these types of src1, src2, … and dst."""
    word = result << FLAGS["DST_DTYPE"].lsb | (FLAGS["DST_DESC"].mask if descriptors else 0)
    for name, desc, dtype in zip(_TYPE_FLAGS, _DESC_FLAGS, types, strict=False):
        word |= dtype << FLAGS[name].lsb | (FLAGS[desc].mask if descriptors else 0)
    return word


def stream_packet(
    program: int, flags: int, sources: list[int], dst: int, *, count: int, imms: list[int]
) -> Packet:
    """A VECTOR packet with its sources in their places."""
    src1, src2, src3 = (*sources, 0, 0, 0)[:PLAIN_SOURCES]
    params = (program, count, *imms, src3 & 0xFFFF_FFFF, src3 >> 32)
    return Packet(Opcode.VECTOR, flags, src1, src2, dst, params)


def _sizes(rng: random.Random, longest: int) -> tuple[int, ...]:
    """Mostly a few elements in a few dimensions, now and then a row of many."""
    rank = rng.randint(1, MAX_RANK)
    most = (20 * longest, 2 * longest, longest // 2, 5, 4)[rank - 1]
    return tuple(rng.randint(1, max(2, most)) for _ in range(rank))


def _imms(rng: random.Random) -> list[int]:
    return [
        rng.choice(_NOTABLE) if rng.random() < 0.7 else rng.getrandbits(32)
        for _ in range(PLAIN_IMMEDIATES)
    ]


def _dense(arena: Arena, dtype: DType, count: int) -> int:
    size_bytes = count * DTYPE_BYTES[dtype]
    address = arena.operand(size_bytes, DTYPE_BYTES[dtype])
    arena.fill(address, size_bytes, dtype)
    return address


def _scattered(arena: Arena, dtype: DType, sizes: tuple[int, ...], *, source: bool) -> int:
    steps = strides(arena.rng, sizes, broadcast=source)
    return place_view(arena, dtype, sizes, steps, source=source)


def vector(arena: Arena, longest: int) -> Packet:
    """A random VECTOR of any boot program."""
    program = arena.rng.choice(tuple(PROGRAMS.values()))
    return plain_vector(arena, LINES[program.name], program, longest)


def plain_vector(arena: Arena, line: int, program: VectorProgram, longest: int) -> Packet:
    """A random VECTOR of the program at a line, without operand list."""
    direct = program.reduce is Reduce.NONE and arena.rng.random() < 0.4
    make = _direct if direct else _described
    return make(arena, line, program, longest)


def _direct(arena: Arena, line: int, program: VectorProgram, longest: int) -> Packet:
    rng = arena.rng
    count = rng.randint(1, 20 * longest)
    types = [rng.choice(list(DType)) for _ in range(program.sources)]
    result = rng.choice(list(DType))
    sources = [_dense(arena, dtype, count) for dtype in types]
    dst = _dense(arena, result, count)
    if types and rng.random() < 0.2:  # in place
        result, dst = types[-1], sources[-1]
    flags = stream_flags(types, result, descriptors=False)
    return stream_packet(line, flags, sources, dst, count=count, imms=_imms(rng))


def _described(arena: Arena, line: int, program: VectorProgram, longest: int) -> Packet:
    rng = arena.rng
    sizes = _sizes(rng, longest)
    reduced = sizes if program.reduce is Reduce.NONE else (*sizes[:-1], 1)
    types = [rng.choice(list(DType)) for _ in range(program.sources)]
    result = rng.choice(list(DType))
    sources = [_scattered(arena, dtype, sizes, source=True) for dtype in types]
    dst = _scattered(arena, result, reduced, source=False)
    flags = stream_flags(types, result, descriptors=True)
    return stream_packet(line, flags, sources, dst, count=0, imms=_imms(rng))


def strided_vectors(arena: Arena) -> Iterator[Packet]:
    """Rows whose elements are 1, 2, 3, … elements apart, of each size of element: whole vectors,
    and vectors and an element."""
    lengths = (3 * REDUCTION_LANES, 3 * REDUCTION_LANES + 1)
    for dtype, distance, length in product(_OF_EACH_SIZE, range(1, _FARTHEST + 1), lengths):
        sizes = (2, length)
        src = place_view(arena, dtype, sizes, (distance * length + 1, distance), source=True)
        dst = place_view(arena, dtype, sizes, (length, 1))
        flags = stream_flags([dtype], dtype, descriptors=True)
        yield stream_packet(LINES["move"], flags, [src], dst, count=0, imms=[0] * PLAIN_IMMEDIATES)


def indices(
    arena: Arena, dtype: DType, sizes: tuple[int, ...], limit: int, last: int, *, apart: int = 1
) -> int:
    """The descriptor of random indices below `limit`, `apart` elements from one to the next, of
    which the last one is `last`."""
    rng, width = arena.rng, DTYPE_BYTES[dtype]
    rows = rng.random() < 0.5 and len(sizes) > 1  # one index for a whole row
    kept = (*sizes[:-1], 1) if rows else sizes
    dense = tuple(apart * prod(kept[at + 1 :]) for at in range(len(kept)))
    few = min(limit, rng.choice((2, limit)))  # equal places one after the other, or not
    values = [rng.randrange(few) for _ in range(prod(kept) - 1)] + [last]
    base = arena.place(width * apart * len(values), width)
    between = bytes(width * (apart - 1))
    data = b"".join(value.to_bytes(width, "little", signed=True) + between for value in values)
    arena.contents.append((base, data))
    at = arena.place(64, 64)
    steps = (*dense[:-1], 0) if rows else dense
    arena.contents.append((at, Descriptor(base, dtype, sizes, steps).pack()))
    return at


def gather(arena: Arena, longest: int) -> Packet:
    """A random GATHER: elements, or whole rows of the table."""
    dtype = arena.rng.choice(list(DType))
    return _indexed(arena, longest, Opcode.GATHER, dtype, 0)


def scatter(arena: Arena, longest: int) -> Packet:
    """A random SCATTER, with or without ACCUMULATE; places may be equal."""
    rng = arena.rng
    if rng.random() < 0.5:
        return _indexed(arena, longest, Opcode.SCATTER, rng.choice(list(DType)), 0)
    dtype = rng.choice(SCATTER_ADD_DTYPES)
    return _indexed(arena, longest, Opcode.SCATTER, dtype, FLAGS["ACCUMULATE"].mask)


def crowded_scatters(arena: Arena) -> Iterator[Packet]:
    """SCATTERs that add to a table, each beside a COPY with a request for each element: indices
    are still asked for, and wait for their turn, when old values are."""
    table, copied = 60, 400
    for _ in range(6):
        src = place_view(arena, DType.FP32, (table,), (1,), source=True)
        picked = indices(arena, DType.INT32, (table,), table, arena.rng.randrange(table), apart=2)
        dst = place_view(arena, DType.FP32, (table,), (1,))
        word = stream_flags([DType.FP32, DType.INT32], DType.FP32, descriptors=True)
        yield Packet(Opcode.SCATTER, word | FLAGS["ACCUMULATE"].mask, src, picked, dst, (0,))
        src = place_view(arena, DType.INT32, (copied,), (2,), source=True)
        dst = place_view(arena, DType.INT32, (copied,), (1,))
        word = flag_word(DType.INT32, DType.INT32, "SRC1_DESC", "DST_DESC")
        yield Packet(Opcode.COPY, word, src, 0, dst)


def _indexed(arena: Arena, longest: int, opcode: Opcode, dtype: DType, flags: int) -> Packet:
    rng = arena.rng
    sizes = _sizes(rng, longest)
    dim = rng.randrange(len(sizes))
    limit = rng.randint(1, 2 * longest)
    table = (*sizes[:dim], limit, *sizes[dim + 1 :])
    index = rng.choice(INDEX_DTYPES)
    gathers = opcode is Opcode.GATHER
    src1 = _scattered(arena, dtype, table if gathers else sizes, source=True)
    src2 = indices(arena, index, sizes, limit, rng.randrange(limit))
    dst = _scattered(arena, dtype, sizes if gathers else table, source=False)
    flags |= stream_flags([dtype, index], dtype, descriptors=True)
    return Packet(opcode, flags, src1, src2, dst, (dim,))
