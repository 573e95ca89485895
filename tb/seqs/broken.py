# SPDX-License-Identifier: Apache-2.0
"""Illegal packets, each with one thing wrong. The model says which error each one gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from driver.isa import (
    DESCRIPTOR_BYTES,
    FLAGS,
    MAX_RANK,
    Descriptor,
    DType,
    Opcode,
    Packet,
    flag_word,
)
from driver.isa.layout import DESCRIPTOR_FIELDS
from driver.isa.programs import LINES, PROGRAMS
from tb.seqs.arena import Arena, place_view
from tb.seqs.int4 import INT4_BREAKS
from tb.seqs.loading import LISTED, example_load, square_list
from tb.seqs.streams import indices, stream_flags, stream_packet
from tb.seqs.windows import WINDOW_BREAKS

_BYTE = {field.name: field.offset for field in DESCRIPTOR_FIELDS}
"""Where the fields of a descriptor start."""
_SIZES = (3, 4)
UNKNOWN_OPCODES = (10, 15, 0x8000_0001)
"""Some of those that are no operation."""
_ALL_DESC = FLAGS["SRC1_DESC"].mask | FLAGS["SRC2_DESC"].mask | FLAGS["DST_DESC"].mask


def _repeating_destination(packet: Packet, arena: Arena) -> Packet:
    """A COPY whose destination repeats."""
    repeating = Descriptor(arena.place(64, 4), DType.FP32, (4, 4), (4, 0))
    return _copy_into(repeating.pack(), packet, arena)


def _described(byte: int, value: int) -> Callable[[Packet, Arena], Packet]:
    """A COPY whose destination has another byte in its descriptor, of rank 2."""

    def described(packet: Packet, arena: Arena) -> Packet:
        data = bytearray(Descriptor(arena.place(64, 4), DType.FP32, (4, 4), (4, 1)).pack())
        assert data[byte] != value
        data[byte] = value
        return _copy_into(bytes(data), packet, arena)

    return described


def _copy_into(descriptor: bytes, packet: Packet, arena: Arena) -> Packet:
    at = arena.place(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
    arena.contents.append((at, descriptor))
    return Packet(
        Opcode.COPY, flag_word(DType.FP32, DType.FP32, "DST_DESC"), packet.dst & ~63, 0, at
    )


def _dense(arena: Arena, dtype: DType, sizes: tuple[int, ...]) -> int:
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.insert(0, strides[0] * size)
    return place_view(arena, dtype, sizes, tuple(strides))


def _stream(arena: Arena, name: str, **changes: Any) -> Packet:
    """A legal VECTOR of a program with one or two sources of FP32, then the changes."""
    program = PROGRAMS[name]
    sources = [_dense(arena, DType.FP32, _SIZES) for _ in range(program.sources)]
    result = _SIZES if not program.reduce else (*_SIZES[:-1], 1)
    dst = _dense(arena, DType.FP32, result)
    flags = stream_flags([DType.FP32] * program.sources, DType.FP32, descriptors=True)
    packet = stream_packet(LINES[name], flags, sources, dst, count=0, imms=[0] * 4)
    return replace(packet, **changes)


def _counted(packet: Packet) -> Packet:
    """The same with a count; the flags of its descriptors are unchanged."""
    return replace(packet, params=(packet.params[0], 1, *packet.params[2:]))


def _indexed(arena: Arena, opcode: Opcode, **changes: Any) -> Packet:
    """A legal GATHER or SCATTER of FP32 in dimension 0, then the changes."""
    table = (5, _SIZES[1])
    gathers = opcode is Opcode.GATHER
    packet = Packet(
        opcode,
        stream_flags([DType.FP32, DType.INT32], DType.FP32, descriptors=True),
        _dense(arena, DType.FP32, table if gathers else _SIZES),
        indices(arena, DType.INT32, _SIZES, table[0], 0),
        _dense(arena, DType.FP32, _SIZES if gathers else table),
        (0,),
    )
    return replace(packet, **changes)


def _squares(arena: Arena) -> dict[str, int]:
    """Table, elements and result of one shape: only the dimension can be wrong."""
    return {name: _dense(arena, DType.FP32, _SIZES) for name in ("src1", "dst")}


def _typed(packet: Packet, name: str, dtype: int) -> Packet:
    field = FLAGS[name]
    return replace(packet, flags=packet.flags & ~field.mask | dtype << field.lsb)


def _sums_of(arena: Arena, dtype: DType) -> Packet:
    """A SCATTER that accumulates in a type in which it cannot."""
    packet = _indexed(arena, Opcode.SCATTER)
    packet = _typed(_typed(packet, "SRC_DTYPE", dtype), "DST_DTYPE", dtype)
    return replace(packet, flags=packet.flags | FLAGS["ACCUMULATE"].mask)


_OF_A_PRODUCT: dict[str, Callable[[Packet, Arena], Packet]] = {
    "unknown opcode": lambda p, a: replace(p, opcode=a.rng.choice(UNKNOWN_OPCODES)),
    "reserved flag": lambda p, _: replace(p, flags=p.flags | 1 << 16),
    "reserved parameter": lambda p, _: replace(p, params=(*p.params[:4], 0, 1, *p.params[6:])),
    "reserved flag, unknown type": lambda p, _: replace(p, flags=p.flags | 1 << 16 | 0xFF),
    "unknown type": lambda p, _: replace(p, flags=p.flags | 0xFF),
    "zero size": lambda p, _: replace(p, params=(0, *p.params[1:])),
    "misaligned": lambda p, _: replace(p, src1=p.src1 | 1, flags=p.flags & ~0xFF | 0x00),
    "out of range": lambda p, a: replace(p, dst=(a.limit | (1 << 40)) & ~63),
    "repeating destination": _repeating_destination,
    "rank of 0": _described(_BYTE["rank"], 0),
    "rank of more than a byte": _described(_BYTE["rank"] + 1, 1),
    "size of 0": _described(_BYTE["size"] + 4, 0),
    "size beyond the rank": _described(_BYTE["size"] + 4 * 2, 1),
    "last reserved bit": _described(_BYTE["reserved"] + 7, 0x80),
    "stride beyond the rank": _described(_BYTE["stride"] + 4 * 2, 1),
}
"""From a legal MATMUL."""

_OF_A_STREAM: dict[str, Callable[[Packet, Arena], Packet]] = {
    "no such program": lambda _, a: _stream(a, "move", params=(1535,)),
    "absent source typed": lambda _, a: _typed(_stream(a, "move"), "SRC2_DTYPE", DType.INT8),
    "absent source placed": lambda _, a: _stream(a, "neg", src2=64),
    "absent source described": lambda _, a: _stream(
        a, "move", flags=_stream(a, "move").flags | FLAGS["SRC3_DESC"].mask
    ),
    "absent third source": lambda _, a: replace(
        (p := _stream(a, "mul")), params=(*p.params[:7], 1)
    ),
    "unknown type of src3": lambda _, a: _typed(_stream(a, "where"), "SRC3_DTYPE", 9),
    "count with descriptors": lambda _, a: _counted(_stream(a, "mul")),
    "count of a reduction": lambda _, a: _counted(
        replace((p := _stream(a, "sum")), flags=p.flags & ~_ALL_DESC)
    ),
    "one direct operand": lambda _, a: replace(
        (p := _stream(a, "mul")), flags=p.flags & ~FLAGS["SRC2_DESC"].mask
    ),
    "sources of other sizes": lambda _, a: _stream(a, "mul", src2=_dense(a, DType.FP32, (4, 3))),
    "result of other rank": lambda _, a: _stream(a, "mul", dst=_dense(a, DType.FP32, (1, 3, 4))),
    "unreduced result": lambda _, a: _stream(a, "sum", dst=_dense(a, DType.FP32, _SIZES)),
}
"""VECTOR packets of their own."""

_OF_AN_INDEX: dict[str, Callable[[Packet, Arena], Packet]] = {
    "direct indices": lambda _, a: replace(
        (p := _indexed(a, Opcode.GATHER)), flags=p.flags & ~FLAGS["SRC2_DESC"].mask
    ),
    "types that differ": lambda _, a: _typed(_indexed(a, Opcode.GATHER), "DST_DTYPE", DType.INT32),
    "fractional indices": lambda _, a: _typed(
        _indexed(a, Opcode.SCATTER), "SRC2_DTYPE", DType.FP32
    ),
    "sums of bytes": lambda _, a: _sums_of(a, DType.INT8),
    "sums of unsigned bytes": lambda _, a: _sums_of(a, DType.UINT8),
    "sums of int64": lambda _, a: _sums_of(a, DType.INT64),
    "gather that accumulates": lambda _, a: replace(
        (p := _indexed(a, Opcode.GATHER)), flags=p.flags | FLAGS["ACCUMULATE"].mask
    ),
    "dimension beyond all": lambda _, a: _indexed(a, Opcode.SCATTER, params=(MAX_RANK,)),
    "dimension beyond the rank": lambda _, a: _indexed(a, Opcode.GATHER, params=(len(_SIZES),)),
    "dimension beyond the rank of equal sizes": lambda _, a: _indexed(
        a, a.rng.choice((Opcode.GATHER, Opcode.SCATTER)), params=(len(_SIZES),), **_squares(a)
    ),
    "table of other sizes": lambda _, a: _indexed(
        a, Opcode.GATHER, src1=_dense(a, DType.FP32, (5, _SIZES[1] + 1))
    ),
    "indices of other sizes": lambda _, a: _indexed(
        a, Opcode.SCATTER, src2=indices(a, DType.INT32, (_SIZES[0] + 1, _SIZES[1]), 3, 0)
    ),
    "fill of int64": lambda _, a: Packet(
        Opcode.FILL, flag_word(DType.FP32, DType.INT64), dst=a.place(64, 8), params=(4, 0)
    ),
    "sync of an odd address": lambda _, a: Packet(Opcode.SYNC, dst=a.place(64, 64) + 1),
    "sync of half a word": lambda _, a: Packet(Opcode.SYNC, dst=a.place(64, 64) + 2),
}
"""GATHER and SCATTER packets of their own, a FILL and SYNCs."""


def _listed(arena: Arena, **changes: Any) -> Packet:
    """A legal VECTOR with an operand list, then the changes."""
    return replace(square_list(arena, LINES["mul"], PROGRAMS["mul"]), **changes)


def _patched(arena: Arena, byte: int, value: int) -> Packet:
    """The same with a byte of its list replaced."""
    packet = _listed(arena)
    address, data = arena.contents.pop()
    changed = bytearray(data)
    assert changed[byte] != value
    changed[byte] = value
    arena.contents.append((address, bytes(changed)))
    return packet


_OF_A_LIST: dict[str, Callable[[Packet, Arena], Packet]] = {
    "list with a type": lambda _, a: _typed(_listed(a), "SRC2_DTYPE", DType.INT8),
    "list with a descriptor flag": lambda _, a: _listed(a, flags=LISTED | FLAGS["DST_DESC"].mask),
    "list with src2": lambda _, a: _listed(a, src2=64),
    "list with dst": lambda _, a: _listed(a, dst=1 << 40),
    "list and no program": lambda _, a: _listed(a, params=(1023, 1)),
    "list with a count": lambda _, a: _listed(a, params=(LINES["mul"], 256)),
    "list misaligned": lambda _, a: replace((p := _listed(a)), src1=p.src1 + 32),
    "list out of range": lambda _, a: _listed(a, src1=(a.limit | (1 << 40)) & ~63),
    "list with an unknown type": lambda _, a: _patched(a, 8, 7),
    "list with a type of more than a byte": lambda _, a: _patched(a, 9, 1),
    "list with a rank of 7": lambda _, a: _patched(a, 12, 7),
    "list with a rank of more than a byte": lambda _, a: _patched(a, 13, 1),
    "list with reserved bits": lambda _, a: _patched(a, 64 + 56, 1),
    "list with other sizes": lambda _, a: _patched(a, 64 + 16, 17),
    "list with a result of other sizes": lambda _, a: _patched(a, 128 + 20, 15),
    "list with a result that repeats": lambda _, a: _patched(a, 128 + 40, 0),
    "list with misaligned data": lambda _, a: _patched(a, 64, 2),
    "list with data out of range": lambda _, a: _patched(a, 7, 1),
}
"""VECTOR packets with an operand list."""

_OF_A_LOAD: dict[str, Callable[[Packet, Arena], Packet]] = {
    "load of no lines": lambda _, a: replace((p := example_load(a)), params=(p.params[0], 0)),
    "load of too many lines": lambda _, a: replace(example_load(a), params=(1024, 37)),
    "load to boot lines": lambda _, a: replace(example_load(a), params=(1023, 1)),
    "load past the last line": lambda _, a: replace(example_load(a), params=(1535, 2)),
    "load whose last line wraps": lambda _, a: replace(example_load(a), params=(0xFFFF_FFFF, 2)),
    "load with dst": lambda _, a: replace(example_load(a), dst=64),
    "load with a flag": lambda _, a: replace(example_load(a), flags=1),
    "load with a parameter": lambda _, a: replace((p := example_load(a)), params=(*p.params, 0, 1)),
    "load misaligned": lambda _, a: replace((p := example_load(a)), src1=p.src1 + 8),
    "load out of range": lambda _, a: replace(example_load(a), src1=(a.limit | (1 << 40)) & ~63),
}
"""LOADs; malformed images are tb.seqs.images.IMAGE_BREAKS."""

BREAKS = {
    **_OF_A_PRODUCT,
    **_OF_A_STREAM,
    **_OF_AN_INDEX,
    **_OF_A_LIST,
    **_OF_A_LOAD,
    **WINDOW_BREAKS,
    **INT4_BREAKS,
}
"""Ways to be wrong, from a legal MATMUL and room for more."""
