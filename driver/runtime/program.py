# SPDX-License-Identifier: Apache-2.0
"""Programs: the packets of one op as relocatable data, like an object file.

A program names buffers, never addresses: each address in its image is an offset, with a relocation
that says which buffer to add. `bind` adds the addresses. Knows no op and no device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from driver.isa import PACKET_BYTES, Opcode, Packet
from driver.isa.image import digest as image_digest
from driver.isa.micro import VectorProgram
from driver.runtime.buffer import Buffer
from driver.runtime.vector_programs import FIRST_PLACEHOLDER, named_by, packet_name

WORD_BYTES = 8
"""Of the image: addresses are 64-bit words in packets and descriptors alike."""
PACKET_WORDS = PACKET_BYTES // WORD_BYTES
ADDRESS_WORDS = (1, 2, 3, 7)
"""64-bit words of a packet with an address: src1, src2, dst, and src3 in two parameters of VECTOR
and MATMUL."""
_PROGRAM_WORD = 8
"""Of a VECTOR packet: the 32-bit word with its parameter `program`."""
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Section:
    """Memory that a program brings along, besides its operands."""

    kind: Literal["temporary", "constant", "descriptor"]
    size_bytes: int
    first: int | None
    """Number of the first packet that uses it, by a descriptor or directly; None: no packet."""
    last: int | None
    content: int | None
    """Where its bytes begin in the image; None for a temporary, which starts with any bytes."""


@dataclass(frozen=True)
class Relocations:
    """Words of an image to which the address of a buffer is added: entry i says word, buffer."""

    words: NDArray[np.int64]
    symbols: NDArray[np.int64]
    """Number of the buffer: operands first, then sections."""


@dataclass(frozen=True, eq=False)
class Program:
    """What runs one op, on whatever addresses."""

    op: str
    operands: tuple[Buffer, ...]
    """Buffers of arguments and results, in the order in which the call names them."""
    sections: tuple[Section, ...]
    """In the order in which they are allocated."""
    image: Words
    """All packets, then the content of the sections, each from a multiple of 64 bytes on."""
    packet_count: int
    relocations: Relocations
    vector_programs: tuple[str, ...]
    """Programs of the vector engine that the packets name, by name."""

    @cached_property
    def loadable(self) -> tuple[tuple[int, VectorProgram], ...]:
        """Packets that name a program which a device must load, by their numbers."""
        words = self.image[: self.packet_count * PACKET_WORDS].view(np.uint32)
        found = []
        for number, packet in enumerate(words.reshape(-1, 2 * PACKET_WORDS)):
            if packet[0] == Opcode.VECTOR and packet[_PROGRAM_WORD] >= FIRST_PLACEHOLDER:
                program = named_by(int(packet[_PROGRAM_WORD]))
                assert program is not None, "a placeholder of another process"
                found.append((number, program))
        return tuple(found)

    @cached_property
    def packets(self) -> tuple[Packet, ...]:
        """The packets; their addresses are offsets into buffers."""
        return unpacked(self.image[: self.packet_count * PACKET_WORDS].tobytes())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the program does, wherever it is bound: equal programs, equal digests."""
        head: tuple[object, ...] = (
            len(self.operands),
            self.packet_count,
            self.sections,
            self.vector_programs,
        )
        image = self.image.copy()
        for number, program in self.loadable:  # placeholders are this process's
            image.view(np.uint32)[2 * number * PACKET_WORDS + _PROGRAM_WORD] = 0
            head = (*head, image_digest(program))
        parts = (image, self.relocations.words, self.relocations.symbols)
        return hashlib.sha256(
            repr(head).encode() + b"".join(part.tobytes() for part in parts)
        ).hexdigest()

    def bind(self, addresses: Sequence[int]) -> BoundProgram:
        """The program at these addresses: of the operands, then of the sections."""
        at = np.array(addresses, np.uint64)
        image = self.image.copy()
        image[self.relocations.words] += at[self.relocations.symbols]
        data = image.view(np.uint8)
        sections = list(zip(self.sections, addresses[len(self.operands) :], strict=True))
        writes = tuple(
            (address, data[section.content : section.content + section.size_bytes])
            for section, address in sections
            if section.content is not None
        )
        temporaries = tuple(
            range(address, address + section.size_bytes)
            for section, address in sections
            if section.content is None
        )
        packets = data[: self.packet_count * PACKET_BYTES].tobytes()
        return BoundProgram(packets, writes, temporaries)

    def __str__(self) -> str:
        """The listing: a line per buffer, then one per packet."""
        names = [f"operand {number}" for number in range(len(self.operands))]
        names += [f"{part.kind} {number}" for number, part in enumerate(self.sections)]
        used = {
            int(word): names[symbol]
            for word, symbol in zip(self.relocations.words, self.relocations.symbols, strict=True)
        }
        lines = [f"program {self.op}, digest {self.digest[:16]}"]
        for name, buffer in zip(names, self.operands, strict=False):
            lines.append(f"  {name}: {buffer.size_bytes} bytes of {buffer.region} {buffer.name}")
        for name, part in zip(names[len(self.operands) :], self.sections, strict=True):
            life = "never used" if part.first is None else f"packets {part.first} to {part.last}"
            lines.append(f"  {name}: {part.size_bytes} bytes, {life}")
        for number, packet in enumerate(self.packets):
            first = number * PACKET_WORDS
            where = {word - first: used[word] for word in range(first, first + 8) if word in used}
            lines.append(f"  {number}: {_line(packet, where)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class BoundProgram:
    """A program at addresses: write the data, then submit the packets."""

    packet_bytes: bytes
    writes: tuple[tuple[int, Bytes], ...]
    """Address and bytes of descriptors and constants."""
    temporaries: tuple[range, ...]
    """Addresses that the packets may write to, besides those of results."""

    @cached_property
    def packets(self) -> tuple[Packet, ...]:
        """The packets, with addresses."""
        return unpacked(self.packet_bytes)


def packed(packets: Sequence[Packet]) -> bytes:
    """Packets as bytes, one behind the other."""
    return b"".join(packet.pack() for packet in packets)


def unpacked(data: bytes) -> tuple[Packet, ...]:
    """The packets in some bytes."""
    starts = range(0, len(data), PACKET_BYTES)
    return tuple(Packet.unpack(data[at : at + PACKET_BYTES]) for at in starts)


_ADDRESS_WORDS = {1: "src1", 2: "src2", 7: "src3", 3: "dst"}
"""Word of a packet → the operand whose address it is; src3 is a VECTOR's last two parameters."""


def _line(packet: Packet, where: dict[int, str]) -> str:
    params = [*packet.params]
    if packet.opcode == Opcode.VECTOR:
        params = params[1:6]
    offsets = (0, packet.src1, packet.src2, packet.dst, 0, 0, 0, packet.params[6])
    parts = [
        f"{text}={where[word]}+{offsets[word]:#x}"
        for word, text in _ADDRESS_WORDS.items()
        if word in where
    ]
    return f"{packet_name(packet)} flags={packet.flags:#x} {' '.join(parts)} params={params}"
