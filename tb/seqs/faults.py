# SPDX-License-Identifier: Apache-2.0
"""Packets that are legal and fail: on memory that answers with a bus error, or by an index.

Operands and ranges are cut at 64 bytes, the widest beat: device and model then fail alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from driver.backend.shared_memory import FaultRange
from driver.isa import DESCRIPTOR_BYTES, FLAGS, Descriptor, DType, Opcode, Packet, flag_word
from driver.isa.image import PROGRAM_RAM
from driver.isa.micro import VectorProgram
from driver.isa.programs import LINES, PROGRAMS
from driver.isa.types import INT4_ROWS
from tb.seqs.arena import Arena
from tb.seqs.loading import LONGEST_LIST, example_load, line_of, square_list
from tb.seqs.packets import long_sum, plain_copy
from tb.seqs.streams import indices, stream_flags, stream_packet
from tb.seqs.windows import aligned_product

_LINE = 64
_SIDE = 16
_MATRIX_BYTES = 4 * _SIDE * _SIDE
_PAGE = 4096
_DEPTH, _GROUP = 64, 4
"""Rows of int4 weights, and log2 of those that share a scale."""
_NO_FAULT = FaultRange(0, _LINE, on_read=False, on_write=False)
_SQUARE = (_SIDE, _SIDE)
_DENSE = (_SIDE, 1)
_SQUARE_BYTES = 4 * _SIDE * _SIDE
_INDEX_BITS = 32
_WIDE_INDEX = (1 << _INDEX_BITS) + 1
"""Legal but for its upper word."""


@dataclass(frozen=True)
class Faulty:
    """A packet, the memory that fails it, and the bytes that are unspecified afterwards."""

    packet: Packet
    fault: FaultRange
    spoilt: range


def _line(address: int, size_bytes: int, *, write: bool, arena: Arena) -> FaultRange:
    """A line somewhere in the operand that fails in one direction."""
    begin = address + _LINE * arena.rng.randrange(size_bytes // _LINE)
    return FaultRange(begin, begin + _LINE, on_read=not write, on_write=write)


def _product(arena: Arena, operand: int, *flags: str, write: bool = False) -> Faulty:
    """An fp32 MATMUL of which operand A, B or C (0, 1, 2) fails."""
    places = [arena.place(_MATRIX_BYTES, _LINE) for _ in range(3)]
    for address in places:
        arena.fill(address, _MATRIX_BYTES)
    word = flag_word(DType.FP32, DType.FP32, *flags)
    a, b, c = places
    packet = Packet(Opcode.MATMUL, word, a, b, c, (_SIDE, _SIDE, _SIDE, 1))
    fault = _line(places[operand], _MATRIX_BYTES, write=write, arena=arena)
    return Faulty(packet, fault, range(places[2], places[2] + _MATRIX_BYTES))


def _window(arena: Arena, which: int, *, write: bool = False) -> Faulty:
    """A product of windows of which A, B, the start of the sums, C, or the second half of the
    window of A or C (0 to 5) fails."""
    packet, places = aligned_product(arena, _SIDE)
    size_bytes = _MATRIX_BYTES if which < len(places) - 2 else _LINE
    fault = _line(places[which], size_bytes, write=write, arena=arena)
    spoilt = range(places[3], places[3] + _MATRIX_BYTES) if size_bytes > _LINE else range(0)
    return Faulty(packet, fault, spoilt)


def _int4(arena: Arena, failing: str) -> Faulty:
    """A product with weights of four bits of which the words, or the scales, fail."""
    sizes = {
        "A": 2 * _SIDE * _DEPTH,
        "words": 4 * _SIDE * _DEPTH // INT4_ROWS,
        "scales": 2 * _SIDE * _DEPTH >> _GROUP,
        "C": _MATRIX_BYTES,
    }
    places = {name: arena.place(size, _LINE) for name, size in sizes.items()}
    for name, address in places.items():
        arena.fill(address, sizes[name])
    scales = places["scales"]
    flags = flag_word(DType.BF16, DType.FP32) | _GROUP << FLAGS["INT4_GROUP"].lsb
    params = (_SIDE, _DEPTH, _SIDE, 1, 0, 0, scales & 0xFFFF_FFFF, scales >> 32)
    packet = Packet(Opcode.MATMUL, flags, places["A"], places["words"], places["C"], params)
    fault = _line(places[failing], sizes[failing], write=False, arena=arena)
    return Faulty(packet, fault, range(places["C"], places["C"] + sizes["C"]))


def _copy(arena: Arena, *, write: bool) -> Faulty:
    """A COPY of two pages: the first has the fault, so that the last burst has no error."""
    packet = plain_copy(arena, 2 * _PAGE, _PAGE)
    fault = _line(packet.dst if write else packet.src1, _PAGE, write=write, arena=arena)
    return Faulty(packet, fault, range(packet.dst, packet.dst + 2 * _PAGE))


def late_copy(arena: Arena, size_bytes: int) -> Faulty:
    """A COPY of which the last line cannot be read."""
    packet = plain_copy(arena, size_bytes, _PAGE)
    fault = line_of(packet.src1, size_bytes // _LINE - 1)
    return Faulty(packet, fault, range(packet.dst, packet.dst + size_bytes))


def late_sum(arena: Arena, count: int) -> Faulty:
    """A MATMUL of a row and a column of so many numbers whose sum cannot be written."""
    dst = arena.place(_LINE, _LINE)
    packet = replace(long_sum(arena, count), dst=dst)
    return Faulty(packet, line_of(dst, 0, write=True), range(dst, dst + 4))


def _sync(arena: Arena) -> Faulty:
    dst = arena.place(_LINE, _LINE)
    packet = Packet(Opcode.SYNC, dst=dst, params=(arena.rng.getrandbits(32),))
    return Faulty(packet, _line(dst, _LINE, write=True, arena=arena), range(dst, dst + 4))


def _descriptor(arena: Arena) -> Faulty:
    at, dst = arena.place(DESCRIPTOR_BYTES, _LINE), arena.place(_LINE, _LINE)
    arena.contents.append((at, Descriptor(dst, DType.INT8, (_LINE,), (1,)).pack()))
    packet = Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT8, "DST_DESC"), dst=at)
    return Faulty(packet, _line(at, _LINE, write=False, arena=arena), range(0))


def _aligned_square(arena: Arena) -> tuple[int, int]:
    """A square of FP32 on a line: data and descriptor."""
    data = arena.place(_SQUARE_BYTES, _LINE)
    arena.fill(data, _SQUARE_BYTES)
    at = arena.place(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)
    arena.contents.append((at, Descriptor(data, DType.FP32, _SQUARE, _DENSE).pack()))
    return data, at


def _stream(arena: Arena, operand: int, *, write: bool = False) -> Faulty:
    """A VECTOR with three sources of which one, or its destination (3), fails."""
    places = [_aligned_square(arena) for _ in range(4)]
    data, descriptors = zip(*places, strict=True)
    program = PROGRAMS["mul_add"]
    flags = stream_flags([DType.FP32] * program.sources, DType.FP32, descriptors=True)
    packet = stream_packet(
        LINES[program.name], flags, list(descriptors[:3]), descriptors[3], count=0, imms=[0] * 4
    )
    fault = _line(data[operand], _SQUARE_BYTES, write=write, arena=arena)
    return Faulty(packet, fault, range(data[3], data[3] + _SQUARE_BYTES))


def _indexed(arena: Arena, opcode: Opcode, failing: str, *flags: str, last: int = _SIDE) -> Faulty:
    """A GATHER or SCATTER of rows of which the tensor `failing` fails, or nothing ("") but an index
    that is none, the `last` one."""
    kind = DType.INT64 if last.bit_length() > _INDEX_BITS else DType.INT32
    src, src_at = _aligned_square(arena)
    dst, dst_at = _aligned_square(arena)
    picked = indices(arena, kind, _SQUARE, _SIDE, 0 if failing else last)
    index_base = Descriptor.unpack(arena.contents[-1][1]).base // _LINE * _LINE
    word = stream_flags([DType.FP32, kind], DType.FP32, descriptors=True)
    for name in flags:
        word |= FLAGS[name].mask
    packet = Packet(opcode, word, src_at, picked, dst_at, (0,))
    fault = {
        "": _NO_FAULT,
        "indices": FaultRange(index_base, index_base + _LINE, on_write=False),
        "source": FaultRange(src, src + _SQUARE_BYTES, on_write=False),
        "old values": FaultRange(dst, dst + _SQUARE_BYTES, on_write=False),
        "destination": FaultRange(dst, dst + _SQUARE_BYTES, on_read=False),
    }[failing]
    return Faulty(packet, fault, range(dst, dst + _SQUARE_BYTES))


def _list_of(arena: Arena, line: int, program: VectorProgram) -> tuple[Packet, list[int]]:
    """A VECTOR with an operand list, and where its operands lie."""
    packet = square_list(arena, line, program)
    (_, data) = arena.contents[-1]
    return packet, [Descriptor.unpack(data[at : at + 64]).base for at in range(0, len(data), 64)]


def _listed(arena: Arena, failing: int | str) -> Faulty:
    """A VECTOR with an operand list: descriptor `failing` fails, or "a source", or "a result"."""
    packet, bases = _list_of(arena, LINES["mul"], PROGRAMS["mul"])
    spoilt = range(bases[-1], bases[-1] + _SQUARE_BYTES)
    if isinstance(failing, int):
        return Faulty(packet, line_of(packet.src1, failing), range(0))
    write = failing == "a result"
    fault = _line(bases[-1 if write else 1], _SQUARE_BYTES, write=write, arena=arena)
    return Faulty(packet, fault, spoilt)


def longest_lists(arena: Arena) -> Iterator[Faulty]:
    """VECTORs of LONGEST_LIST, which has to be loaded, of which each operand fails in turn."""
    for operand in range(LONGEST_LIST.sources + LONGEST_LIST.results):
        packet, bases = _list_of(arena, PROGRAM_RAM, LONGEST_LIST)
        write = operand >= LONGEST_LIST.sources
        fault = _line(bases[operand], _SQUARE_BYTES, write=write, arena=arena)
        first, last = bases[LONGEST_LIST.sources], bases[-1]
        yield Faulty(packet, fault, range(first, last + _SQUARE_BYTES))


def _load(arena: Arena) -> Faulty:
    packet = example_load(arena)
    return Faulty(packet, line_of(packet.src1, 0), range(0))


FAULTS: dict[str, Callable[[Arena], Faulty]] = {
    "A": lambda arena: _product(arena, 0),
    "B": lambda arena: _product(arena, 1),
    "old C": lambda arena: _product(arena, 2, "ACCUMULATE"),
    "C": lambda arena: _product(arena, 2, write=True),
    "window A": lambda arena: _window(arena, 0),
    "window B": lambda arena: _window(arena, 1),
    "window where sums start": lambda arena: _window(arena, 2),
    "window C": lambda arena: _window(arena, 3, write=True),
    "second half of window A": lambda arena: _window(arena, 4),
    "second half of window C": lambda arena: _window(arena, 5),
    "int4 words": lambda arena: _int4(arena, "words"),
    "int4 scales": lambda arena: _int4(arena, "scales"),
    "source of a copy": lambda arena: _copy(arena, write=False),
    "destination of a copy": lambda arena: _copy(arena, write=True),
    "word of a sync": _sync,
    "descriptor": _descriptor,
    "first source of a stream": lambda arena: _stream(arena, 0),
    "second source of a stream": lambda arena: _stream(arena, 1),
    "third source of a stream": lambda arena: _stream(arena, 2),
    "result of a stream": lambda arena: _stream(arena, 3, write=True),
    "first descriptor of a list": lambda arena: _listed(arena, 0),
    "last descriptor of a list": lambda arena: _listed(arena, 2),
    "source in a list": lambda arena: _listed(arena, "a source"),
    "result in a list": lambda arena: _listed(arena, "a result"),
    "image of a load": _load,
    "indices": lambda arena: _indexed(arena, Opcode.GATHER, "indices"),
    "table": lambda arena: _indexed(arena, Opcode.GATHER, "source"),
    "gathered": lambda arena: _indexed(arena, Opcode.GATHER, "destination"),
    "indices of a scatter": lambda arena: _indexed(arena, Opcode.SCATTER, "indices"),
    "source of a scatter": lambda arena: _indexed(arena, Opcode.SCATTER, "source"),
    "scattered": lambda arena: _indexed(arena, Opcode.SCATTER, "destination"),
    "sums of a scatter": lambda arena: _indexed(arena, Opcode.SCATTER, "destination", "ACCUMULATE"),
    "old values of a scatter": lambda arena: _indexed(
        arena, Opcode.SCATTER, "old values", "ACCUMULATE"
    ),
    "last index of a gather": lambda arena: _indexed(arena, Opcode.GATHER, ""),
    "last index of a scatter": lambda arena: _indexed(arena, Opcode.SCATTER, "", "ACCUMULATE"),
    "last index of a gather, 33 bits": lambda arena: _indexed(
        arena, Opcode.GATHER, "", last=_WIDE_INDEX
    ),
    "last index of a scatter, 33 bits": lambda arena: _indexed(
        arena, Opcode.SCATTER, "", last=_WIDE_INDEX
    ),
    "last index of a gather, negative": lambda arena: _indexed(arena, Opcode.GATHER, "", last=-1),
}
"""What fails, by name."""
