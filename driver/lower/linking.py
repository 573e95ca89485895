# SPDX-License-Identifier: Apache-2.0
"""Makes a Program of collected packets: it numbers sections and finds relocations and lifetimes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from driver.config import ALIGNMENT_BYTES
from driver.isa import DESCRIPTOR_BYTES, Opcode, Packet
from driver.runtime.buffer import Buffer
from driver.runtime.program import (
    ADDRESS_WORDS,
    PACKET_WORDS,
    WORD_BYTES,
    Program,
    Relocations,
    Section,
)
from driver.runtime.vector_programs import name_of

Collected = tuple[Packet, tuple[Buffer | None, ...]]
"""A packet, and the buffers of src1, src2, dst and src3."""


SectionKind = Literal["temporary", "constant", "descriptor"]


@dataclass(frozen=True)
class _Part:
    kind: SectionKind
    buffer: Buffer
    content: bytes
    described: tuple[Buffer, ...]
    """Buffer i has the address in the first word of descriptor i of the content; of a constant, the
    one buffer has it in the first word."""


class Sections:
    """The memory that a program brings along, in the order in which it was asked for."""

    def __init__(self) -> None:
        self._parts: dict[Buffer, _Part] = {}

    def add(
        self,
        kind: SectionKind,
        size_bytes: int,
        content: bytes = b"",
        described: Sequence[Buffer] = (),
    ) -> Buffer:
        """A new section. `described`: the buffers whose addresses the descriptors begin with."""
        buffer = Buffer(size_bytes, name=f"{kind} {len(self._parts)}")
        self.keep(buffer, kind, content, described)
        return buffer

    def keep(
        self, buffer: Buffer, kind: SectionKind, content: bytes, described: Sequence[Buffer]
    ) -> None:
        """A section under this buffer."""
        self._parts[buffer] = _Part(kind, buffer, content, tuple(described))

    def linked(self, op: str, operands: Sequence[Buffer], packets: Sequence[Collected]) -> Program:
        """The program of these packets."""
        lives = self._lifetimes(packets)
        outside = [buffer for buffer in self._named(packets) if buffer not in self._parts]
        known = tuple(dict.fromkeys([*operands, *outside]))
        image = bytearray(b"".join(packet.pack() for packet, _ in packets))
        at = {buffer: number for number, buffer in enumerate((*known, *self._parts))}
        words = [
            (number * PACKET_WORDS + word, at[buffer])
            for number, (_, buffers) in enumerate(packets)
            for word, buffer in zip(ADDRESS_WORDS, buffers, strict=True)
            if buffer is not None
        ]
        sections = []
        for part in self._parts.values():
            first, last = lives.get(part.buffer, (None, None))
            start = len(image) if part.content else None
            sections.append(Section(part.kind, part.buffer.size_bytes, first, last, start))
            for number, buffer in enumerate(part.described):
                place = len(image) + number * DESCRIPTOR_BYTES
                words.append((place // WORD_BYTES, at[buffer]))
            image += part.content + bytes(-len(part.content) % ALIGNMENT_BYTES)
        table = np.array(words, np.int64).reshape(-1, 2)
        programs = (packet.params[0] for packet, _ in packets if packet.opcode == Opcode.VECTOR)
        return Program(
            op=op,
            operands=known,
            sections=tuple(sections),
            image=np.frombuffer(bytes(image), np.uint64),
            packet_count=len(packets),
            relocations=Relocations(table[:, 0].copy(), table[:, 1].copy()),
            vector_programs=tuple(dict.fromkeys(name_of(number) for number in programs)),
        )

    def _named(self, packets: Sequence[Collected]) -> Iterator[Buffer]:
        """Every buffer that a packet names, by a descriptor or directly, in order."""
        for _, buffers in packets:
            for buffer in buffers:
                if buffer is not None:
                    yield from self._behind(buffer)

    def _behind(self, buffer: Buffer) -> Iterator[Buffer]:
        yield buffer
        part = self._parts.get(buffer)
        for described in () if part is None else part.described:
            yield from self._behind(described)

    def _lifetimes(self, packets: Sequence[Collected]) -> dict[Buffer, tuple[int, int]]:
        """First and last packet that names each buffer."""
        found: dict[Buffer, tuple[int, int]] = {}
        for number, packet in enumerate(packets):
            for buffer in self._named([packet]):
                first, _ = found.get(buffer, (number, number))
                found[buffer] = (first, number)
        return found
