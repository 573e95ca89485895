# SPDX-License-Identifier: Apache-2.0
"""Legal packets on memory that answers with a bus error. Knows no simulator.

Operands and ranges are cut at 64 bytes, the widest beat: device and model then fail alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driver.backend.shared_memory import FaultRange
from driver.isa import DESCRIPTOR_BYTES, Descriptor, DType, Opcode, Packet, flag_word
from tb.seqs.packets import Arena

_LINE = 64
_SIDE = 16
_MATRIX_BYTES = 4 * _SIDE * _SIDE
_PAGE = 4096


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
    packet = Packet(Opcode.MATMUL, word, *places, (_SIDE, _SIDE, _SIDE, 1))
    fault = _line(places[operand], _MATRIX_BYTES, write=write, arena=arena)
    return Faulty(packet, fault, range(places[2], places[2] + _MATRIX_BYTES))


def _copy(arena: Arena, *, write: bool) -> Faulty:
    """A COPY of two pages; its fault is in the first, so that the last burst is answered well."""
    src, dst = (arena.place(2 * _PAGE, _PAGE) for _ in range(2))
    arena.fill(src, 2 * _PAGE)
    packet = Packet(Opcode.COPY, flag_word(DType.INT8, DType.INT8), src, 0, dst, (2 * _PAGE,))
    fault = _line(dst if write else src, _PAGE, write=write, arena=arena)
    return Faulty(packet, fault, range(dst, dst + 2 * _PAGE))


def _sync(arena: Arena) -> Faulty:
    dst = arena.place(_LINE, _LINE)
    packet = Packet(Opcode.SYNC, dst=dst, params=(arena.rng.getrandbits(32),))
    return Faulty(packet, _line(dst, _LINE, write=True, arena=arena), range(dst, dst + 4))


def _descriptor(arena: Arena) -> Faulty:
    at, dst = arena.place(DESCRIPTOR_BYTES, _LINE), arena.place(_LINE, _LINE)
    arena.contents.append((at, Descriptor(dst, DType.INT8, (_LINE,), (1,)).pack()))
    packet = Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT8, "DST_DESC"), dst=at)
    return Faulty(packet, _line(at, _LINE, write=False, arena=arena), range(0))


FAULTS: dict[str, Callable[[Arena], Faulty]] = {
    "A": lambda arena: _product(arena, 0),
    "B": lambda arena: _product(arena, 1),
    "old C": lambda arena: _product(arena, 2, "ACCUMULATE"),
    "C": lambda arena: _product(arena, 2, write=True),
    "source of a copy": lambda arena: _copy(arena, write=False),
    "destination of a copy": lambda arena: _copy(arena, write=True),
    "word of a sync": _sync,
    "descriptor": _descriptor,
}
"""What fails, by name."""
