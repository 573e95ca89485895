# SPDX-License-Identifier: Apache-2.0
"""Random commands of every kind whose operands lie in a few KiB that they share.

Products of windows and of weights of four bits, programs that are loaded, tables, operand lists,
strided sources, GATHER and SCATTER: as `tb.seqs.packets` makes them, but each reads and writes what
others write and read. Now and then a COPY writes one of a command's operands, or what describes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from driver.isa import DTYPE_BYTES, Descriptor, DType, Opcode, Packet, flag_word
from driver.isa.image import LINE_BYTES
from driver.isa.micro import Reduce
from driver.isa.programs import LINES, PROGRAMS
from tb.seqs.arena import Arena
from tb.seqs.loading import LISTED
from tb.seqs.packets import legal

_TRIES = 50
_SHARED_BYTES = (1 << 11, 1 << 12, 1 << 13)
_LONGEST = (5, 9, 14, 20)
_STAGED = 0.3
"""Part of the commands of which a descriptor or the like is written just before."""
_OVERWRITTEN = 0.4
"""Part of the commands of which an operand is written just before or just behind."""
_MOST = 40
"""Elements along one dimension of interleaved operands."""


@dataclass
class SharedArena(Arena):
    """An arena whose operands lie in `shared`; all else has memory of its own.

    Operands of a command do not overlap, except that sources may overlap sources. One that does not
    fit has memory of its own as well.
    """

    shared: range = range(0)
    written: list[range] = field(default_factory=list)
    """Where no other operand of the command may lie; it may be written."""
    read: list[range] = field(default_factory=list)

    def operand(self, size_bytes: int, alignment: int, *, source: bool = False) -> int:
        room = (len(self.shared) - size_bytes) // alignment
        for _ in range(_TRIES if room >= 0 else 0):
            address = self.shared.start + self.rng.randint(0, room) * alignment
            found = range(address, address + size_bytes)
            others = self.written if source else [*self.written, *self.read]
            if all(found.stop <= one.start or one.stop <= found.start for one in others):
                (self.read if source else self.written).append(found)
                return address
        return self.place(size_bytes, alignment)

    def fill(self, address: int, size_bytes: int, dtype: DType = DType.INT8) -> None:
        """What is shared keeps what earlier commands leave there."""
        if address not in self.shared:
            super().fill(address, size_bytes, dtype)

    def next_command(self) -> None:
        """No operand is placed yet."""
        self.written.clear()
        self.read.clear()


def mixed(arena: Arena, count: int) -> list[Packet]:
    """At least `count` commands. The arena goes on behind what they use."""
    rng = arena.rng
    size_bytes = rng.choice(_SHARED_BYTES)
    base = arena.place(size_bytes, LINE_BYTES)
    arena.fill(base, size_bytes)
    place = range(base, base + size_bytes)
    shared = SharedArena(rng, arena.base, arena.limit, arena.contents, arena.loaded, place)
    packets: list[Packet] = []
    while len(packets) < count:
        packets += _commands(shared)
    arena.base = shared.base
    return packets


def _commands(arena: SharedArena) -> list[Packet]:
    """One command, and those before it that write what it is described by."""
    arena.next_command()
    first = len(arena.contents)
    make = arena.rng.choices((legal, _interleaved), (9, 1))[0]
    packets = [make(arena, arena.rng.choice(_LONGEST))]
    if len(arena.contents) > first and arena.rng.random() < _STAGED:
        packets.insert(0, _staged(arena, arena.rng.randrange(first, len(arena.contents))))
    operands = arena.read + arena.written
    if operands and arena.rng.random() < _OVERWRITTEN:
        other = _overwriting(arena, arena.rng.choice(operands))
        packets.insert(arena.rng.choice((0, len(packets))), other)
    return packets


def _overwriting(arena: SharedArena, operand: range) -> Packet:
    """A COPY to an operand, and now and then to all before it: then it takes longer than the next
    command takes for its descriptors."""
    begin = arena.rng.choice((operand.start, arena.shared.start))
    count = operand.stop - begin
    source = arena.place(count, 1)
    Arena.fill(arena, source, count)
    word = flag_word(DType.INT8, DType.INT8)
    return Packet(Opcode.COPY, word, source, 0, begin, (count,))


def _staged(arena: Arena, number: int) -> Packet:
    """The COPY that brings part of contents `number` (a descriptor, a list of them, a window, an
    image, indices) to its place, where something else is before."""
    rng = arena.rng
    address, data = arena.contents[number]
    begin = rng.choice([0, *range(0, len(data), LINE_BYTES)])
    part = data[begin : rng.choice((len(data), begin + LINE_BYTES))]
    other = rng.randbytes(len(part))
    arena.contents[number] = (address, data[:begin] + other + data[begin + len(part) :])
    source = arena.place(len(part), 1)
    arena.contents.append((source, part))
    word = flag_word(DType.INT8, DType.INT8)
    return Packet(Opcode.COPY, word, source, 0, address + begin, (len(part),))


def _interleaved(arena: Arena, longest: int) -> Packet:
    """A VECTOR whose operands are columns of one matrix, each in place or between all others."""
    rng = arena.rng
    programs = [(LINES[name], one) for name, one in PROGRAMS.items()] + list(arena.loaded.items())
    line, program = rng.choice([one for one in programs if one[1].reduce is Reduce.NONE])
    operands = program.sources + program.results
    dtype = rng.choice(list(DType))
    width = rng.randint(1, 3)
    rows, pitch = rng.randint(1, min(_MOST, 2 * longest)), operands * width
    base = arena.operand(rows * pitch * DTYPE_BYTES[dtype], DTYPE_BYTES[dtype])
    arena.fill(base, rows * pitch * DTYPE_BYTES[dtype], dtype)
    columns = rng.sample(range(operands), operands)
    for result in range(min(program.sources, program.results)):
        if rng.random() < 0.3:
            columns[program.sources + result] = columns[result]
    sizes = (rows, width) if rng.random() < 0.5 or width > 1 else (rows,)
    steps = (pitch, 1)[: len(sizes)]
    assert prod(sizes) == rows * width
    views = (
        Descriptor(base + column * width * DTYPE_BYTES[dtype], dtype, sizes, steps)
        for column in columns
    )
    address = arena.place(LINE_BYTES * operands, LINE_BYTES)
    arena.contents.append((address, b"".join(view.pack() for view in views)))
    imms = (rng.getrandbits(32) for _ in range(6))
    return Packet(Opcode.VECTOR, LISTED, address, params=(line, 0, *imms))
