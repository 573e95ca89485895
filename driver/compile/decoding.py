# SPDX-License-Identifier: Apache-2.0
"""Programs of the runtime as commands on views.

A VECTOR packet becomes a VectorPass. Every other packet stays as it is, with the sections that it
names: its operands are whole buffers here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from driver.compile.passes import (
    Command,
    ElementCopy,
    MatrixProduct,
    OtherCommand,
    VectorPass,
)
from driver.isa import (
    DESCRIPTOR_BYTES,
    Descriptor,
    DType,
    Opcode,
    Packet,
    flag_field,
)
from driver.isa.micro import VectorProgram
from driver.runtime.buffer import Buffer
from driver.runtime.program import ADDRESS_WORDS, PACKET_WORDS, WORD_BYTES, Program, Section
from driver.runtime.vector_programs import named_by
from driver.runtime.views import TensorView, dense

_DST = 2
_SOURCE_NAMES = (
    ("SRC1_DESC", "SRC_DTYPE"),
    ("SRC2_DESC", "SRC2_DTYPE"),
    ("SRC3_DESC", "SRC3_DTYPE"),
)
_SOURCE_PLACES = (0, 1, 3)
"""Of src1 to src3 among the address words."""
_FIRST_IMM = 2


def vector_commands(program: Program) -> int:
    """How many VECTOR packets a program has."""
    words = program.image[: program.packet_count * PACKET_WORDS : PACKET_WORDS]
    return int(np.count_nonzero(words & np.uint64(0xFFFF_FFFF) == int(Opcode.VECTOR)))


def written_buffers(program: Program) -> frozenset[Buffer]:
    """The buffers that its packets write to."""
    return frozenset[Buffer]().union(*(one.writes for one in DecodedProgram(program).commands))


@dataclass(frozen=True)
class SectionContent:
    """A section, its bytes, and the buffers that its descriptors describe."""

    kind: Literal["temporary", "constant", "descriptor"]
    data: bytes
    described: tuple[Buffer, ...]


class DecodedProgram:
    """A program taken apart: its commands, and the sections behind their buffers."""

    def __init__(self, program: Program) -> None:
        self._program = program
        sections = [Buffer(part.size_bytes, name=part.kind) for part in program.sections]
        self._symbols = [*program.operands, *sections]
        words, symbols = program.relocations.words, program.relocations.symbols
        self._at = dict(zip(words.tolist(), symbols.tolist(), strict=True))
        self._bytes = program.image.tobytes()
        self.sections = {
            buffer: self._content(part)
            for buffer, part in zip(sections, program.sections, strict=True)
        }
        self.commands = [self._command(*entry) for entry in enumerate(program.packets)]

    @property
    def temporaries(self) -> frozenset[Buffer]:
        """Buffers that start with any bytes and are of no use afterwards."""
        return frozenset(b for b, section in self.sections.items() if section.kind == "temporary")

    def _content(self, part: Section) -> SectionContent:
        if part.content is None:
            return SectionContent(part.kind, b"", ())
        described = [
            self._at.get(place // WORD_BYTES)
            for place in range(part.content, part.content + part.size_bytes, DESCRIPTOR_BYTES)
        ]
        data = self._bytes[part.content : part.content + part.size_bytes]
        found = tuple(self._symbols[symbol] for symbol in described if symbol is not None)
        return SectionContent(part.kind, data, found)

    def _command(self, number: int, packet: Packet) -> Command:
        first = number * PACKET_WORDS
        found = [self._at.get(first + word) for word in ADDRESS_WORDS]
        buffers = tuple(None if symbol is None else self._symbols[symbol] for symbol in found)
        if packet.opcode == Opcode.VECTOR:
            program = named_by(packet.params[0])
            if program is not None:
                return self._pass(packet, buffers, program)
        return self._other(packet, buffers)

    def _other(self, packet: Packet, buffers: tuple[Buffer | None, ...]) -> OtherCommand:
        behind = [self._behind(buffer) for buffer in buffers]
        writes = behind[_DST]
        reads = frozenset[Buffer]().union(*(behind[place] for place in _SOURCE_PLACES))
        if flag_field(packet.flags, "ACCUMULATE"):
            reads |= writes
        if not flag_field(packet.flags, "OPERAND_LIST"):
            return OtherCommand(packet, buffers, reads, writes, work=self._work(packet, buffers))
        listed = self._listed(buffers[0], packet.src1)
        return OtherCommand(packet, buffers, reads, reads, listed)  # any of them may be a result

    def _work(
        self, packet: Packet, buffers: tuple[Buffer | None, ...]
    ) -> MatrixProduct | ElementCopy | None:
        """A product or a copy as views; None for other packets, for windows and weights of four
        bits."""
        if packet.opcode == Opcode.COPY:
            return self._copy(packet, buffers)
        if packet.opcode != Opcode.MATMUL or flag_field(packet.flags, "INT4_GROUP"):
            return None
        m, k, n, batch = packet.params[:4]
        first, second = (packet.src1, "SRC1_DESC", "TRANS_A"), (packet.src2, "SRC2_DESC", "TRANS_B")
        a = self._matrix(packet, buffers[0], first, (batch, m, k), "SRC_DTYPE")
        b = self._matrix(packet, buffers[1], second, (batch, k, n), "SRC_DTYPE")
        dst = (packet.dst, "DST_DESC", "")
        result = self._matrix(packet, buffers[_DST], dst, (batch, m, n), "DST_DTYPE")
        if a is None or b is None or result is None:
            return None
        start = None
        if flag_field(packet.flags, "SRC3_DESC"):
            offset = packet.params[6] | packet.params[7] << 32
            third = (offset, "SRC3_DESC", "")
            start = self._matrix(packet, buffers[3], third, (batch, m, n), "DST_DTYPE")
            if start is None:
                return None
        accumulates = start is None and bool(flag_field(packet.flags, "ACCUMULATE"))
        return MatrixProduct(a, b, start, result, accumulates)

    def _matrix(
        self,
        packet: Packet,
        buffer: Buffer | None,
        operand: tuple[int, str, str],
        shape: tuple[int, int, int],
        dtype: str,
    ) -> TensorView | None:
        """An operand (offset, flag of a descriptor, flag of a transpose) as [batch, rows, columns];
        None for a window."""
        assert buffer is not None
        offset, desc, trans = operand
        turned = bool(trans) and bool(flag_field(packet.flags, trans))
        if flag_field(packet.flags, desc):
            if len(self.sections[buffer].data) != DESCRIPTOR_BYTES:
                return None
            (view,) = self._listed(buffer, offset)
        else:
            stored = (shape[0], shape[2], shape[1]) if turned else shape
            view = dense(buffer, DType(flag_field(packet.flags, dtype)), stored, offset)
        return view.transposed() if turned else view

    def _copy(self, packet: Packet, buffers: tuple[Buffer | None, ...]) -> ElementCopy:
        """A side without a descriptor is dense, with the sizes of the other one."""
        sides = ((buffers[0], packet.src1, "SRC1_DESC"), (buffers[_DST], packet.dst, "DST_DESC"))
        described: list[TensorView | None] = []
        for buffer, offset, flag in sides:
            found = self._listed(buffer, offset) if flag_field(packet.flags, flag) else (None,)
            described += found
        sizes = next((view.sizes for view in described if view), (packet.params[0],))
        dtype = DType(flag_field(packet.flags, "SRC_DTYPE"))
        views = []
        for view, (buffer, offset, _) in zip(described, sides, strict=True):
            assert buffer is not None
            views.append(view or dense(buffer, dtype, sizes, offset))
        return ElementCopy(*views)

    def _behind(self, buffer: Buffer | None) -> frozenset[Buffer]:
        """The buffers of data that an address stands for."""
        if buffer is None:
            return frozenset()
        section = self.sections.get(buffer)
        if section is not None and section.described:
            return frozenset(section.described)
        return frozenset((buffer,))

    def _pass(
        self, packet: Packet, buffers: tuple[Buffer | None, ...], program: VectorProgram
    ) -> VectorPass:
        imms = packet.params[_FIRST_IMM : _FIRST_IMM + len(program.imms)]
        imms = (*imms, *(0 for _ in range(len(program.imms) - len(imms))))
        if flag_field(packet.flags, "OPERAND_LIST"):
            listed = self._listed(buffers[0], packet.src1)
            return VectorPass(program, listed[: program.sources], listed[program.sources :], imms)
        low, high = (*packet.params, *(0 for _ in range(8)))[6:8]
        offsets = (packet.src1, packet.src2, low | high << 32)
        sources = tuple(
            self._operand(packet, buffers[place], offset, *names)
            for place, offset, names in zip(
                _SOURCE_PLACES[: program.sources], offsets, _SOURCE_NAMES, strict=False
            )
        )
        result = self._operand(packet, buffers[_DST], packet.dst, "DST_DESC", "DST_DTYPE")
        return VectorPass(program, sources, (result,), imms)

    def _operand(
        self, packet: Packet, buffer: Buffer | None, offset: int, desc: str, dtype: str
    ) -> TensorView:
        assert buffer is not None
        if flag_field(packet.flags, desc):
            (view,) = self._listed(buffer, offset)
            return view
        count = packet.params[1]
        return TensorView(buffer, offset, DType(flag_field(packet.flags, dtype)), (count,), (1,))

    def _listed(self, buffer: Buffer | None, offset: int) -> tuple[TensorView, ...]:
        assert buffer is not None and not offset
        section = self.sections[buffer]
        starts = range(0, len(section.data), DESCRIPTOR_BYTES)
        found = [Descriptor.unpack(section.data[at : at + DESCRIPTOR_BYTES]) for at in starts]
        return tuple(
            TensorView(described, view.base, DType(view.dtype), view.sizes, view.strides)
            for view, described in zip(found, section.described, strict=True)
        )
