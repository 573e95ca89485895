# SPDX-License-Identifier: Apache-2.0
"""Pairs of commands that depend on each other through one operand alone, or through one line of
what describes the operands.

First a COPY brings the operand, its odd words last, and the command behind it uses it; then a
command uses the operand, and a FILL behind it writes the operand's last byte. Nothing else of a
pair meets: if the device does not see the one dependence, bits differ.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod

from driver.isa import (
    DTYPE_BYTES,
    FLAGS,
    Descriptor,
    DType,
    Opcode,
    Packet,
    WindowDescriptor,
    flag_word,
)
from driver.isa.image import LINE_BYTES, PROGRAM_RAM
from driver.isa.programs import LINES
from driver.isa.types import INT4_ROWS
from tb.seqs.arena import Arena
from tb.seqs.loading import LISTED, LONGEST_LIST, load_longest_list
from tb.seqs.streams import stream_flags, stream_packet

_APART = 2 * LINE_BYTES
"""Alignment of all places: the second line of what describes an operand has an odd number."""
_BROUGHT_BYTES = 1024
"""What the COPY writes at least; so much room is behind every place."""
_LAST_BYTES = 28
"""Of a line, from the first stride of a descriptor on."""
_ELEMENTS = 240
_ROWS, _DEPTH, _COLUMNS = 16, 40, 32
_LOG2_GROUP = 3
_FILLED = 0x3C
"""Of each byte: a small float of any type."""
_DESCRIBED = ("SRC1_DESC", "SRC2_DESC", "DST_DESC")


@dataclass(frozen=True)
class Meeting:
    """Two commands with one dependence."""

    name: str
    before: tuple[Packet, ...]
    """What must have finished."""
    first: Packet
    second: Packet

    @property
    def packets(self) -> list[Packet]:
        """As they are queued: nothing of an earlier pair runs beside them."""
        return [Packet(Opcode.FENCE), *self.before, self.first, self.second]


@dataclass
class _Used:
    """A command in the making: the parts of memory that it uses."""

    arena: Arena
    operands: list[range] = field(default_factory=list)
    lines: list[range] = field(default_factory=list)
    """Of descriptors, lists, windows and images; and the last words of each alone."""

    def place(self, size_bytes: int) -> int:
        address = self.arena.place(size_bytes, _APART)
        self.arena.base += _BROUGHT_BYTES
        return address

    def data(self, dtype: DType, sizes: tuple[int, ...], content: bytes = b"") -> int:
        """Dense random data, or this content."""
        size_bytes = prod(sizes) * DTYPE_BYTES[dtype]
        address = self.place(size_bytes)
        self.operands.append(range(address, address + size_bytes))
        self.arena.contents.append((address, content or self._random(dtype, size_bytes)))
        return address

    def _random(self, dtype: DType, size_bytes: int) -> bytes:
        """Floats near 1, so that each of a sum's terms changes it."""
        if dtype is DType.INT32:
            return self.arena.rng.randbytes(size_bytes)
        width = DTYPE_BYTES[dtype]
        floats = (self.arena.rng.uniform(0.5, 2) for _ in range(size_bytes // width))
        return b"".join(struct.pack("<f", value)[-width:] for value in floats)

    def described(self, dtype: DType, sizes: tuple[int, ...], content: bytes = b"") -> int:
        """The address of the descriptor of such data."""
        return self.description(_view(self.data(dtype, sizes, content), dtype, sizes))

    def description(self, words: bytes) -> int:
        """A place with these words, of which each line is one to meet in."""
        address = self.place(len(words))
        self.arena.contents.append((address, words))
        ends = range(address, address + len(words), LINE_BYTES)
        for line in ends:
            last = line + LINE_BYTES
            self.lines += [range(line, last), range(last - _LAST_BYTES, last)]
        return address


def _view(address: int, dtype: DType, sizes: tuple[int, ...]) -> bytes:
    steps = tuple(prod(sizes[at + 1 :]) for at in range(len(sizes)))
    return Descriptor(address, dtype, sizes, steps).pack()


# ---------------------------------------------------------------------- commands
def _three_sources(used: _Used) -> Packet:
    types = [DType.INT32] * 3
    sources = [used.data(dtype, (_ELEMENTS,)) for dtype in types]
    dst = used.data(DType.INT32, (_ELEMENTS,))
    flags = stream_flags(types, DType.INT32, descriptors=False)
    return stream_packet(LINES["int_add3"], flags, sources, dst, count=_ELEMENTS, imms=[0] * 4)


def _three_described(used: _Used) -> Packet:
    types = [DType.INT32] * 3
    sources = [used.described(dtype, (_ELEMENTS,)) for dtype in types]
    dst = used.described(DType.INT32, (_ELEMENTS,))
    flags = stream_flags(types, DType.INT32, descriptors=True)
    return stream_packet(LINES["int_add3"], flags, sources, dst, count=0, imms=[0] * 4)


def _listed(used: _Used) -> Packet:
    count = LONGEST_LIST.sources + LONGEST_LIST.results
    sizes = (_ELEMENTS,)
    views = [_view(used.data(DType.INT32, sizes), DType.INT32, sizes) for _ in range(count)]
    return Packet(Opcode.VECTOR, LISTED, used.description(b"".join(views)), params=(PROGRAM_RAM, 0))


def _window(used: _Used, rows: int, columns: int) -> int:
    base = used.data(DType.FP32, (rows, columns))
    sizes, steps = (1, 1, rows // 4, 4, 1, columns, 1), (0, 0, 4 * columns, columns, 0, 1, 0)
    return used.description(WindowDescriptor(base, DType.FP32, sizes, steps).pack())


def _product(used: _Used, place: Callable[[_Used, int, int], int]) -> Packet:
    shapes = ((_ROWS, _DEPTH), (_DEPTH, _COLUMNS), (_ROWS, _COLUMNS), (_ROWS, _COLUMNS))
    a, b, start, c = (place(used, *shape) for shape in shapes)
    word = flag_word(DType.FP32, DType.FP32, *_DESCRIBED, "SRC3_DESC", "ACCUMULATE")
    params = (_ROWS, _DEPTH, _COLUMNS, 1, 0, 0, start & 0xFFFF_FFFF, start >> 32)
    return Packet(Opcode.MATMUL, word, a, b, c, params)


def _windows(used: _Used) -> Packet:
    return _product(used, _window)


def _matrices(used: _Used) -> Packet:
    return _product(used, lambda one, m, n: one.described(DType.FP32, (1, m, n)))


def _scaled(used: _Used) -> Packet:
    """A product of weights of four bits."""
    a = used.data(DType.BF16, (_ROWS, _DEPTH))
    words = used.data(DType.INT32, (_DEPTH // INT4_ROWS, _COLUMNS))
    scales = used.data(DType.BF16, (_DEPTH >> _LOG2_GROUP, _COLUMNS))
    c = used.data(DType.BF16, (_ROWS, _COLUMNS))
    word = flag_word(DType.BF16, DType.BF16) | _LOG2_GROUP << FLAGS["INT4_GROUP"].lsb
    params = (_ROWS, _DEPTH, _COLUMNS, 1, 0, 0, scales & 0xFFFF_FFFF, scales >> 32)
    return Packet(Opcode.MATMUL, word, a, words, c, params)


def _indexed(used: _Used, opcode: Opcode) -> Packet:
    places = used.arena.rng.sample(range(_ELEMENTS), _ELEMENTS)
    numbers = b"".join(place.to_bytes(4, "little") for place in places)
    src1 = used.described(DType.INT32, (_ELEMENTS,))
    src2 = used.described(DType.INT32, (_ELEMENTS,), numbers)
    dst = used.described(DType.INT32, (_ELEMENTS,))
    word = stream_flags([DType.INT32, DType.INT32], DType.INT32, descriptors=True)
    return Packet(opcode, word, src1, src2, dst, (0,))


def _gather(used: _Used) -> Packet:
    return _indexed(used, Opcode.GATHER)


def _scatter(used: _Used) -> Packet:
    return _indexed(used, Opcode.SCATTER)


_COMMANDS: dict[str, Callable[[_Used], Packet]] = {
    "VECTOR": _three_sources,
    "VECTOR with descriptors": _three_described,
    "VECTOR with a list": _listed,
    "MATMUL": _matrices,
    "MATMUL of windows": _windows,
    "MATMUL of four bits": _scaled,
    "GATHER": _gather,
    "SCATTER": _scatter,
}
_ALONE = (Opcode.GATHER, Opcode.SCATTER)
"""Nothing starts behind them before they have finished."""


# ---------------------------------------------------------------------- pairs
def meetings(arena: Arena) -> Iterator[Meeting]:
    """Every pair, on fresh memory."""
    load = load_longest_list(arena)
    for name, make in _COMMANDS.items():
        before = (load,) if make is _listed else ()
        probe = _Used(Arena(arena.rng, arena.base, arena.limit))
        opcode = make(probe).opcode
        for number in range(len(probe.operands) + len(probe.lines)):
            used = _Used(arena)
            command = make(used)
            part = (used.operands + used.lines)[number]
            copy = _brought(used, part)
            yield Meeting(f"{name}: part {number} is brought", before, copy, command)
        for number in range(len(probe.operands) if opcode not in _ALONE else 0):
            used = _Used(arena)
            command = make(used)
            fill = _overwritten(used.operands[number])
            yield Meeting(f"{name}: part {number} is overwritten", before, command, fill)
    yield from _results_that_describe(arena, (load,))


def _results_that_describe(arena: Arena, before: tuple[Packet, ...]) -> Iterator[Meeting]:
    """VECTORs with a list of which the last line of each result in turn is the descriptor of the
    FILL behind it, where that of another place is before."""
    places = [arena.place(LINE_BYTES, LINE_BYTES) for _ in range(2)]
    for place in places:
        arena.fill(place, LINE_BYTES)
    wrong, right = (_view(place, DType.INT32, (LINE_BYTES // 4,)) for place in places)
    for number in range(LONGEST_LIST.results):
        used = _Used(arena)
        command = _listed(used)
        sources = used.operands[: LONGEST_LIST.sources]
        line = used.operands[LONGEST_LIST.sources + number].stop - LINE_BYTES
        ends = (right, bytes(LINE_BYTES), bytes(LINE_BYTES), right)  # all results end alike
        arena.contents += [
            (source.stop - LINE_BYTES, end) for source, end in zip(sources, ends, strict=True)
        ]
        arena.contents.append((line, wrong))
        word = flag_word(DType.FP32, DType.INT32, "DST_DESC")
        fill = Packet(Opcode.FILL, word, dst=line, params=(0, arena.rng.getrandbits(32)))
        yield Meeting(f"VECTOR with a list: result {number} describes", before, command, fill)


def _brought(used: _Used, part: range) -> Packet:
    """The COPY that brings a part, where something else is before: the even words of it and of
    memory behind it, then the odd ones."""
    arena = used.arena
    count = max(_BROUGHT_BYTES, len(part)) // 8
    (number,) = (
        at
        for at, (start, data) in enumerate(arena.contents)
        if part.start - start in range(len(data))
    )
    start, data = arena.contents[number]
    skipped = part.start - start
    right = data[skipped:]
    right += arena.rng.randbytes(8 * count - len(right))
    words = [right[at : at + 4] for at in range(0, 8 * count, 4)]
    other = arena.rng.randbytes(len(part))
    arena.contents[number] = start, data[:skipped] + other + data[skipped + len(part) :]
    source = used.place(8 * count)
    arena.contents.append((source, b"".join(words[0::2] + words[1::2])))
    view = Descriptor(part.start, DType.INT32, (2, count), (1, 2)).pack()
    at = used.place(len(view))
    arena.contents.append((at, view))
    return Packet(Opcode.COPY, flag_word(DType.INT32, DType.INT32, "DST_DESC"), source, 0, at)


def _overwritten(part: range) -> Packet:
    """The FILL of the last byte of a part."""
    word = flag_word(DType.FP32, DType.INT8)
    return Packet(Opcode.FILL, word, 0, 0, part.stop - 1, (1, _FILLED))
