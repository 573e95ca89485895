# SPDX-License-Identifier: Apache-2.0
"""Streams in the middle of which a command fails, on a bus error or by an index.

What is behind it has memory of its own, so that it can run at the same time, up to one command that
reads what the failed one should have written: that one waits, and nothing behind it has started.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driver.backend.shared_memory import FaultRange
from driver.isa import DType, Opcode, Packet, flag_word
from driver.isa.programs import LINES, PROGRAMS
from tb.seqs.arena import Arena
from tb.seqs.dependent import dependent, shared_memory
from tb.seqs.faults import FAULTS, Faulty
from tb.seqs.streams import stream_flags, stream_packet

_LINE = 64
_ALONE = frozenset((Opcode.GATHER, Opcode.SCATTER, Opcode.LOAD))
"""Nothing behind these starts before they have finished."""
_SIDES = (5, 16, 33)
_COUNTS = (16, 300, 2000)


@dataclass(frozen=True)
class FailingStream:
    """Packets, of which number `failing` is the first that fails."""

    packets: list[Packet]
    failing: int
    waiting: int
    """The first packet behind it that cannot have started."""
    faults: list[FaultRange]
    spoilt: list[range]
    """Bytes that are unspecified afterwards."""


@dataclass(frozen=True)
class Independent:
    """A command, and the bytes that it writes."""

    packet: Packet
    written: range


def failing_stream(arena: Arena, name: str, length: int) -> FailingStream:
    """`length` packets of which one is that of FAULTS[name], and a later one may fail as well."""
    rng = arena.rng
    before = dependent(shared_memory(arena), rng.randrange(length // 2 + 1))[: length // 2]
    first = FAULTS[name](arena)
    beside: list[Independent | Faulty] = [
        independent(arena) for _ in range(rng.randrange(length - len(before) - 1))
    ]
    if beside and rng.random() < 0.4:
        beside[rng.randrange(len(beside))] = FAULTS[rng.choice(list(FAULTS))](arena)
    packets = [*before, first.packet, *(one.packet for one in beside)]
    if first.spoilt:
        packets.append(_copy(arena, first.spoilt.start).packet)
    while len(packets) < length:
        packets.append(independent(arena).packet)
    started = first.spoilt and first.packet.opcode not in _ALONE
    written = [_written(one) for one in beside] if started else []
    seconds = [one.fault for one in beside if isinstance(one, Faulty)]
    spoilt = [one for one in (first.spoilt, *written) if one]
    waiting = len(before) + 1 + len(written)
    return FailingStream(packets, len(before), waiting, [first.fault, *seconds], spoilt)


def independent(arena: Arena) -> Independent:
    """A random command whose operands no other one has."""
    return arena.rng.choice(_MAKERS)(arena)


def _written(one: Independent | Faulty) -> range:
    return one.spoilt if isinstance(one, Faulty) else one.written


# ---------------------------------------------------------------------- independent commands
def _fresh(arena: Arena, size_bytes: int) -> int:
    address = arena.place(size_bytes, _LINE)
    arena.fill(address, size_bytes)
    return address


def _copy(arena: Arena, src: int | None = None) -> Independent:
    count = _LINE if src is not None else arena.rng.choice(_COUNTS)
    src = _fresh(arena, count) if src is None else src
    dst = _fresh(arena, count)
    packet = Packet(Opcode.COPY, flag_word(DType.INT8, DType.INT8), src, 0, dst, (count,))
    return Independent(packet, range(dst, dst + count))


def _fill(arena: Arena) -> Independent:
    count = arena.rng.choice(_COUNTS)
    dst = _fresh(arena, 4 * count)
    params = (count, arena.rng.getrandbits(32))
    packet = Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT32), 0, 0, dst, params)
    return Independent(packet, range(dst, dst + 4 * count))


def _product(arena: Arena) -> Independent:
    side = arena.rng.choice(_SIDES)
    size_bytes = 4 * side * side
    a, b, c = (_fresh(arena, size_bytes) for _ in range(3))
    word = flag_word(DType.FP32, DType.FP32)
    packet = Packet(Opcode.MATMUL, word, a, b, c, (side, side, side, 1))
    return Independent(packet, range(c, c + size_bytes))


def _pass(arena: Arena) -> Independent:
    count = arena.rng.choice(_COUNTS)
    places = [_fresh(arena, 4 * count) for _ in range(PROGRAMS["add"].sources + 1)]
    flags = stream_flags([DType.FP32] * (len(places) - 1), DType.FP32, descriptors=False)
    packet = stream_packet(LINES["add"], flags, places[:-1], places[-1], count=count, imms=[0] * 4)
    return Independent(packet, range(places[-1], places[-1] + 4 * count))


_MAKERS: tuple[Callable[[Arena], Independent], ...] = (_copy, _fill, _product, _pass)
