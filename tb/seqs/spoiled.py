# SPDX-License-Identifier: Apache-2.0
"""Random packets of every kind with several things wrong at a time.

Which error such a packet gives is the order of checks in docs/isa.md; the model decides. Each wrong
alone makes a packet illegal, whatever else is wrong with it, so that none of them ever runs.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

from driver.backend.shared_memory import FaultRange
from driver.isa import (
    DESCRIPTOR_BYTES,
    FLAGS,
    MAX_RANK,
    OPERATION_OF,
    PARAM_COUNT,
    DType,
    Opcode,
    Packet,
    begins_window,
)
from driver.isa.image import PROGRAM_RAM
from driver.isa.layout import DESCRIPTOR_FIELDS, WINDOW_FIELDS
from tb.seqs.arena import Arena
from tb.seqs.broken import UNKNOWN_OPCODES
from tb.seqs.loading import LISTED
from tb.seqs.packets import MAKERS, nop

_LONGEST = 9
_WRONGS_AT_A_TIME = (2, 2, 3)
_UNKNOWN = 0.05
"""Part of the packets with such an opcode, which hides all else."""
_NO_SUCH_TYPE = range(max(DType) + 1, 16)
_NO_SUCH_RANK = (0, MAX_RANK + 1)
_UNREADABLE = 0.2
"""Part of the packets of which a line that describes an operand cannot be read, besides."""
_BEYOND = 1 << 40
"""In an address: outside every memory."""
_ODD = (0, 0, 1, 2, 4, 8, 32)
"""Bits of an address: aligned to any element, or not."""
_TYPES = ("SRC_DTYPE", "DST_DTYPE", "SRC2_DTYPE", "SRC3_DTYPE")
_ADDRESSES = ("src1", "src2", "dst")
_SRC3 = ("src3_low", "src3_high")
_DESCRIBED = LISTED | sum(FLAGS[f"{name}_DESC"].mask for name in ("SRC1", "SRC2", "SRC3", "DST"))
"""With any of these, a count is wrong, and without them 0 is."""
_WRONG_VALUES = {
    Opcode.MATMUL: (("m", 0), ("k", 0), ("n", 0), ("batch", 0)),
    Opcode.VECTOR: (("program", PROGRAM_RAM - 1),),
    Opcode.GATHER: (("dim", MAX_RANK),),
    Opcode.SCATTER: (("dim", MAX_RANK),),
    Opcode.LOAD: (("line", PROGRAM_RAM - 1), ("lines", 0)),
}
"""Parameters and a value of each that is always wrong."""
_OF_DESCRIPTOR = {field.name: field.offset for field in DESCRIPTOR_FIELDS}
"""Where its fields are; up to the first size, those of a window are there too."""
_OF_WINDOW = {field.name: field.offset for field in WINDOW_FIELDS}


@dataclass(frozen=True)
class Spoiled:
    """A packet that no device may run, what is wrong with it, and memory that fails."""

    packet: Packet
    wrongs: tuple[str, ...]
    faults: tuple[FaultRange, ...]

    def __str__(self) -> str:
        return ", ".join(self.wrongs)


def spoiled(arena: Arena) -> Spoiled:
    """The next one; every kind of packet that has an operand is as likely as any other."""
    rng = arena.rng
    make = rng.choice([make for make, _ in MAKERS if make is not nop])
    first = len(arena.contents)
    packet = make(arena, _LONGEST)
    wrongs = [Opcode(packet.opcode).name]
    count = rng.choice(_WRONGS_AT_A_TIME)
    weights = [weight for weight, _ in _WRONGS.values()]
    while len(wrongs) <= count:
        (name,) = rng.choices(list(_WRONGS), weights)
        found = _WRONGS[name][1](packet, arena, first)
        if found is not None:
            packet = found
            wrongs.append(name)
    faults = _unreadable(packet, arena, first) if rng.random() < _UNREADABLE else ()
    wrongs += ["unreadable line"] * len(faults)
    if rng.random() < _UNKNOWN:
        packet = replace(packet, opcode=rng.choice(UNKNOWN_OPCODES))
        wrongs.append("opcode")
    return Spoiled(packet, tuple(wrongs), faults)


# ------------------------------------------------------------------ wrongs of the packet's words
def _unused_flag(packet: Packet, arena: Arena, _first: int) -> Packet:
    used = OPERATION_OF[Opcode(packet.opcode)].flag_mask
    bit = arena.rng.choice([bit for bit in range(32) if not used >> bit & 1])
    return replace(packet, flags=packet.flags | 1 << bit)


def _type(packet: Packet, arena: Arena, _first: int) -> Packet | None:
    used = OPERATION_OF[Opcode(packet.opcode)].flags
    names = [name for name in _TYPES if name in used]
    if not names:
        return None
    field = FLAGS[arena.rng.choice(names)]
    value = arena.rng.choice(_NO_SUCH_TYPE) << field.lsb
    return replace(packet, flags=packet.flags & ~field.mask | value)


def _with_param(packet: Packet, at: int, value: int) -> Packet:
    params = [*packet.params, *[0] * (PARAM_COUNT - len(packet.params))]
    params[at] = value
    return replace(packet, params=tuple(params))


def _unused_param(packet: Packet, arena: Arena, _first: int) -> Packet | None:
    used = OPERATION_OF[Opcode(packet.opcode)].param_mask
    free = [at for at in range(PARAM_COUNT) if not used >> at & 1]
    if not free:
        return None
    return _with_param(packet, arena.rng.choice(free), arena.rng.getrandbits(31) + 1)


def _param(packet: Packet, arena: Arena, _first: int) -> Packet | None:
    positions = OPERATION_OF[Opcode(packet.opcode)].param_at
    values = list(_WRONG_VALUES.get(Opcode(packet.opcode), ()))
    if "count" in positions:
        values.append(("count", int(bool(packet.flags & _DESCRIBED))))
    if not values:
        return None
    name, value = arena.rng.choice(values)
    return _with_param(packet, positions[name], value)


def _changed(packet: Packet, name: str, bits: int) -> Packet:
    """With these bits of an address set."""
    if name == "src3":
        low, high = (OPERATION_OF[Opcode(packet.opcode)].param_at[one] for one in _SRC3)
        params = list(packet.params)
        params[low] |= bits & 0xFFFF_FFFF
        params[high] |= bits >> 32
        return replace(packet, params=tuple(params))
    return replace(packet, **{name: getattr(packet, name) | bits})


def _unused_address(packet: Packet, arena: Arena, _first: int) -> Packet | None:
    used = OPERATION_OF[Opcode(packet.opcode)].addresses
    free = [name for name in _ADDRESSES if name not in used]
    if not free:
        return None
    return _changed(packet, arena.rng.choice(free), 1 << arena.rng.randrange(64))


def _far_address(packet: Packet, arena: Arena, _first: int) -> Packet | None:
    used = {*OPERATION_OF[Opcode(packet.opcode)].addresses, *_described(packet)}
    if not used:
        return None
    return _changed(packet, arena.rng.choice(sorted(used)), _BEYOND | arena.rng.choice(_ODD))


# ---------------------------------------------------------------------- wrongs of descriptors
def _described(packet: Packet) -> dict[str, int]:
    """The addresses that are those of descriptors, lists and images."""
    if packet.opcode == Opcode.LOAD or packet.flags & LISTED:
        return {"src1": packet.src1}
    names = [name for name in _ADDRESSES if packet.flags & FLAGS[f"{name.upper()}_DESC"].mask]
    found = {name: getattr(packet, name) for name in names}
    positions = OPERATION_OF[Opcode(packet.opcode)].param_at
    if packet.flags & FLAGS["SRC3_DESC"].mask and _SRC3[0] in positions:
        low, high = (packet.params[positions[one]] for one in _SRC3)
        found["src3"] = low | high << 32
    return found


def _odd_address(packet: Packet, arena: Arena, _first: int) -> Packet | None:
    names = list(_described(packet))
    if not names:
        return None
    return _changed(packet, arena.rng.choice(names), 1 << arena.rng.randrange(6))


_Word = Callable[[random.Random, bytes], tuple[int, bytes]]
"""What is written into the bytes of a descriptor, and from which byte on."""


def _word(name: str, *values: int) -> _Word:
    return lambda rng, _: (_OF_DESCRIPTOR[name], struct.pack("<I", rng.choice(values)))


def _reserved_word(rng: random.Random, data: bytes) -> tuple[int, bytes]:
    offsets = _OF_WINDOW if begins_window(data) else _OF_DESCRIPTOR
    return offsets["reserved"], struct.pack("<I", 1 << rng.randrange(32))


def _far_base(rng: random.Random, data: bytes) -> tuple[int, bytes]:
    return _OF_DESCRIPTOR["base"], struct.pack("<Q", _BEYOND | rng.choice(_ODD))


def _known(packet: Packet, arena: Arena, first: int) -> list[int]:
    """Which contents are the packet's descriptors, list or image."""
    places = set(_described(packet).values())
    return [at for at in range(first, len(arena.contents)) if arena.contents[at][0] in places]


def _unreadable(packet: Packet, arena: Arena, first: int) -> tuple[FaultRange, ...]:
    known = _known(packet, arena, first)
    if not known:
        return ()
    address, data = arena.contents[arena.rng.choice(known)]
    begin = address + arena.rng.randrange(0, len(data), DESCRIPTOR_BYTES)
    return (FaultRange(begin, begin + DESCRIPTOR_BYTES, on_write=False),)


def _in_descriptor(word: _Word) -> Callable[[Packet, Arena, int], Packet | None]:
    """A word of one of the packet's descriptors is another."""

    def spoil(packet: Packet, arena: Arena, first: int) -> Packet | None:
        if packet.opcode == Opcode.LOAD:
            return None
        known = _known(packet, arena, first)
        if not known:
            return None
        number = arena.rng.choice(known)
        address, data = arena.contents[number]
        lists = bool(packet.flags & LISTED)
        begin = arena.rng.randrange(0, len(data), DESCRIPTOR_BYTES) if lists else 0
        offset, value = word(arena.rng, data[begin : begin + DESCRIPTOR_BYTES])
        offset += begin
        arena.contents[number] = (address, data[:offset] + value + data[offset + len(value) :])
        return packet

    return spoil


_WRONGS: dict[str, tuple[int, Callable[[Packet, Arena, int], Packet | None]]] = {
    "unused flag": (1, _unused_flag),
    "unused parameter": (1, _unused_param),
    "unused address": (1, _unused_address),
    "type": (2, _type),
    "parameter": (6, _param),
    "address out of range": (4, _far_address),
    "address misaligned": (4, _odd_address),
    "descriptor's base": (4, _in_descriptor(_far_base)),
    "descriptor's type": (4, _in_descriptor(_word("dtype", *_NO_SUCH_TYPE))),
    "descriptor's rank": (4, _in_descriptor(_word("rank", *_NO_SUCH_RANK))),
    "descriptor's size": (4, _in_descriptor(_word("size", 0))),
    "descriptor's reserved word": (4, _in_descriptor(_reserved_word)),
}
"""How often each comes, and what it does to a packet, in the arena with its contents, of which the
first has that number. It gives None where the packet has nothing of the kind."""
