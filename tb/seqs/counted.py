# SPDX-License-Identifier: Apache-2.0
"""Commands whose beats and work follow from their packets: one of each engine, dense and aligned.

Each takes its source and its destination, so that two of them can meet in memory or not. What
counts as work is in docs/isa.md, "Completion record".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driver.config import HwConfig
from driver.isa import Descriptor, DType, Opcode, Packet, flag_word
from driver.isa.micro import PLAIN_IMMEDIATES
from driver.isa.programs import LINES
from driver.runtime.engine_counters import Engine
from tb.seqs.arena import Arena
from tb.seqs.loading import load_longest_list
from tb.seqs.streams import stream_flags, stream_packet

_ELEMENT_BYTES = 4
_LINE = 64


@dataclass(frozen=True)
class CountedCommand:
    """A packet, and what its record counts."""

    packet: Packet
    active_cycles: int
    read_beats: int
    """By its engine."""
    written_beats: int
    described_beats: int = 0
    """Of the descriptors that are read before it starts."""


@dataclass(frozen=True)
class CommandMaker:
    """Makes them in an arena."""

    arena: Arena
    config: HwConfig
    side: int
    """Of the square matrices of a product, whole tiles of the array; every operand has so many
    elements, squared."""

    @property
    def _elements(self) -> int:
        return self.side**2

    @property
    def _beats(self) -> int:
        """Of an operand."""
        return self.in_beats(self._bytes)

    def in_beats(self, size_bytes: int) -> int:
        """How many of the bus so many bytes are, from a line on."""
        return 8 * size_bytes // self.config.bus_bits

    @property
    def _bytes(self) -> int:
        return _ELEMENT_BYTES * self._elements

    def one(self, engine: Engine, src: int | None = None, dst: int | None = None) -> CountedCommand:
        """A command of the engine, with operands of its own where none are given."""
        places = (self.operand() if place is None else place for place in (src, dst))
        return _MAKERS[engine](self, *places)

    def operand(self) -> int:
        """Fresh memory for a source or destination: words below the number of elements."""
        address = self.arena.place(self._bytes, _LINE)
        draw = self.arena.rng.randrange
        words = (draw(self._elements).to_bytes(4, "little") for _ in range(self._elements))
        self.arena.contents.append((address, b"".join(words)))
        return address

    def copy(self, src: int, dst: int) -> CountedCommand:
        """Of all elements."""
        word = flag_word(DType.INT32, DType.INT32)
        packet = Packet(Opcode.COPY, word, src, 0, dst, (self._elements,))
        return CountedCommand(packet, self._beats, self._beats, self._beats)

    def fill(self) -> CountedCommand:
        """By the engine of COPY; it reads nothing."""
        word = flag_word(DType.FP32, DType.INT32)
        packet = Packet(Opcode.FILL, word, 0, 0, self.operand(), (self._elements, 1))
        return CountedCommand(packet, self._beats, 0, self._beats)

    def product(self, src: int, dst: int) -> CountedCommand:
        """With a matrix of its own."""
        word, sizes = flag_word(DType.FP32, DType.FP32), (self.side, self.side, self.side, 1)
        packet = Packet(Opcode.MATMUL, word, src, self.operand(), dst, sizes)
        tiles = self.side // self.config.array_size
        row = -(-self.in_beats(_ELEMENT_BYTES * self.side) // tiles)
        operand = self.side * tiles * row  # a row of a tile has beats of its own
        return CountedCommand(
            packet, self.side * tiles**2, self._operands_read(tiles) * operand, operand
        )

    def _operands_read(self, tiles: int) -> int:
        """How often the operands of a product of `tiles` by `tiles` are read, together. Its result
        is made in blocks of up to row_tiles, as many columns wide as the accumulators have room
        for; A is read for each column of blocks, B for each row of them."""
        rows = min(tiles, self.config.row_tiles)
        columns = self.config.acc_tiles >> (rows - 1).bit_length()
        return -(-tiles // rows) - (-tiles // columns)

    def vector_pass(self, src: int, dst: int) -> CountedCommand:
        """Of one instruction, over all elements."""
        word = stream_flags([DType.INT32], DType.INT32, descriptors=False)
        imms = [0] * PLAIN_IMMEDIATES
        packet = stream_packet(LINES["move"], word, [src], dst, count=self._elements, imms=imms)
        instructions = self._elements // self.config.vector_lanes
        return CountedCommand(packet, instructions, self._beats, self._beats)

    def load(self) -> CountedCommand:
        """Of a program, whose image is read twice, a word of 64 bits at a time."""
        packet = load_longest_list(self.arena)
        lines = packet.params[1]
        beats = 2 * self.in_beats(_LINE * lines)
        return CountedCommand(packet, 2 * lines * _LINE // 8, beats, 0)

    def gather(self, src: int, dst: int) -> CountedCommand:
        """The source is the table, of rows of one element; the words of any operand are indices
        into one."""
        bases = (src, self.operand(), dst)
        table, indices, result = (self._described(base) for base in bases)
        word = stream_flags([DType.INT32, DType.INT32], DType.INT32, descriptors=True)
        packet = Packet(Opcode.GATHER, word, table, indices, result, (0,))
        rows = self._elements
        return CountedCommand(
            packet, rows, rows + self._beats, self._beats, self.in_beats(3 * _LINE)
        )

    def _described(self, base: int) -> int:
        at = self.arena.place(_LINE, _LINE)
        descriptor = Descriptor(base, DType.INT32, (self._elements,), (1,))
        self.arena.contents.append((at, descriptor.pack()))
        return at


_MAKERS: Mapping[Engine, Callable[[CommandMaker, int, int], CountedCommand]] = {
    Engine.COPY: CommandMaker.copy,
    Engine.MATRIX: CommandMaker.product,
    Engine.VECTOR: CommandMaker.vector_pass,
    Engine.GATHER: CommandMaker.gather,
}
