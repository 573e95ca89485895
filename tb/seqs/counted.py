# SPDX-License-Identifier: Apache-2.0
"""Commands whose traffic follows from their packets: one of each engine, dense and aligned.

Each takes its source and its destination, so that two of them can meet in memory or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driver.isa import Descriptor, DType, Opcode, Packet, flag_word
from driver.isa.micro import PLAIN_IMMEDIATES
from driver.isa.programs import LINES
from driver.runtime.engine_counters import Engine
from tb.seqs.arena import Arena
from tb.seqs.streams import stream_flags, stream_packet

_SIDE = 32
"""Of the square matrices of a product."""
_ELEMENTS = _SIDE * _SIDE
"""Of every operand, four bytes each."""
_BYTES = 4 * _ELEMENTS
_LINE = 64


@dataclass(frozen=True)
class CountedCommand:
    """A packet, and the bytes that are moved for it."""

    packet: Packet
    read_bytes: int | None
    """By its engine; None where indices decide how many."""
    written_bytes: int
    described_bytes: int = 0
    """Of the descriptors that are read before it starts."""


def operand(arena: Arena) -> int:
    """Fresh memory for a source or destination: words below the number of elements."""
    address = arena.place(_BYTES, _LINE)
    words = (arena.rng.randrange(_ELEMENTS).to_bytes(4, "little") for _ in range(_ELEMENTS))
    arena.contents.append((address, b"".join(words)))
    return address


def _copy(arena: Arena, src: int, dst: int) -> CountedCommand:
    word = flag_word(DType.INT32, DType.INT32)
    packet = Packet(Opcode.COPY, word, src, 0, dst, (_ELEMENTS,))
    return CountedCommand(packet, _BYTES, _BYTES)


def _product(arena: Arena, src: int, dst: int) -> CountedCommand:
    sizes = (_SIDE, _SIDE, _SIDE, 1)
    packet = Packet(
        Opcode.MATMUL, flag_word(DType.FP32, DType.FP32), src, operand(arena), dst, sizes
    )
    return CountedCommand(packet, 2 * _BYTES, _BYTES)


def _pass(arena: Arena, src: int, dst: int) -> CountedCommand:
    word = stream_flags([DType.INT32], DType.INT32, descriptors=False)
    imms = [0] * PLAIN_IMMEDIATES
    packet = stream_packet(LINES["move"], word, [src], dst, count=_ELEMENTS, imms=imms)
    return CountedCommand(packet, _BYTES, _BYTES)


def _gather(arena: Arena, src: int, dst: int) -> CountedCommand:
    """The source is the table; the words of any operand are indices into one."""
    table, indices, result = (_described(arena, base) for base in (src, operand(arena), dst))
    word = stream_flags([DType.INT32, DType.INT32], DType.INT32, descriptors=True)
    packet = Packet(Opcode.GATHER, word, table, indices, result, (0,))
    return CountedCommand(packet, None, _BYTES, 3 * _LINE)


def _described(arena: Arena, base: int) -> int:
    at = arena.place(_LINE, _LINE)
    arena.contents.append((at, Descriptor(base, DType.INT32, (_ELEMENTS,), (1,)).pack()))
    return at


_MAKERS: Mapping[Engine, Callable[[Arena, int, int], CountedCommand]] = {
    Engine.MOVE: _copy,
    Engine.MATRIX: _product,
    Engine.VECTOR: _pass,
    Engine.GATHER: _gather,
}


def counted(
    arena: Arena, engine: Engine, src: int | None = None, dst: int | None = None
) -> CountedCommand:
    """A command of the engine, with operands of its own where none are given."""
    places = (operand(arena) if place is None else place for place in (src, dst))
    return _MAKERS[engine](arena, *places)
