# SPDX-License-Identifier: Apache-2.0
"""The loaded programs of one device: which lines they have, and the LOAD packets for new ones.

A packet that names a placeholder (driver.runtime.vector_programs) gets the program's line. A
program that is not there is loaded before it, in place of those used least recently. A LOAD waits
for all before it, so those of a submission are put at its front where their lines allow it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.config import MemoryMap
from driver.errors import InfrastructureError
from driver.isa import PACKET_BYTES, Opcode, Packet
from driver.isa.image import LINE_BYTES, lines_of, pack
from driver.runtime.memory import Allocator
from driver.runtime.vector_programs import FIRST_PLACEHOLDER, named_by

_PAGE_BYTES = 4096
_PACKET_WORDS = PACKET_BYTES // 4
_PROGRAM_WORD = 8
"""Of a VECTOR packet: its parameter `program`."""
Write = Callable[[int, NDArray[Any]], None]
"""Stores an array at an address of device memory."""


@dataclass(frozen=True)
class CommandSegment:
    """Commands to run at once; all that came before it must have finished."""

    data: bytes
    first: int
    """Number of its first packet, counted without LOADs that were put in."""
    loads: tuple[int, ...] = ()
    """Which of its commands are such LOADs, ascending."""

    def number_of(self, command: int) -> int:
        """The number of a command of this segment; of a LOAD that was put in, of the next."""
        return self.first + command - sum(load < command for load in self.loads)


class _Segment:
    """A segment in the making: LOADs go to the front as far as no packet there uses their lines."""

    def __init__(self, packets: NDArray[np.uint32], first: int) -> None:
        self._packets, self._first = packets, first
        self._loads: list[tuple[int, bytes]] = []
        """The packet before which each LOAD goes, and the LOAD; in order."""
        self._staged: list[range] = []
        """Lines whose images are in memory."""
        self._ahead = first
        """Where the next LOAD goes."""
        self._used: list[range] = []
        """Lines of the programs that packets name from there on."""

    def has_staged(self, lines: range) -> bool:
        """Whether the memory for the image of these lines is taken."""
        return any(_meet(lines, one) for one in self._staged)

    def load(self, row: int, lines: range, packet: bytes) -> None:
        """A LOAD to these lines, which packet number `row` needs."""
        if any(_meet(lines, one) for one in self._used):
            self._ahead, self._used = row, []
        self._loads.append((self._ahead, packet))
        self._staged.append(lines)

    def use(self, lines: range) -> None:
        """A packet names a program there."""
        self._used.append(lines)

    def until(self, end: int) -> CommandSegment:
        """The segment of the packets before number `end`."""
        begin, parts, places = self._first, [], []
        for number, (at, packet) in enumerate(self._loads):
            parts += [self._packets[begin:at].tobytes(), packet]
            places.append(at - self._first + number)
            begin = at
        parts.append(self._packets[begin:end].tobytes())
        return CommandSegment(b"".join(parts), self._first, tuple(places))


def _meet(first: range, second: range) -> bool:
    return first.start < second.stop and second.start < first.stop


class ProgramLines:
    """Lines given to programs: first fit, and the least recently used ones make room."""

    def __init__(self, lines: range) -> None:
        self._lines = lines
        self._held: OrderedDict[int, range] = OrderedDict()

    def find(self, key: int) -> int | None:
        """First line of a program, which counts as a use; None when it has none."""
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key].start

    def place(self, key: int, count: int) -> int:
        """The first of `count` lines for a new program. ValueError when there are not so many."""
        if count > len(self._lines):
            raise ValueError(f"{count} lines, the device has {len(self._lines)}")
        while (found := self._gap(count)) is None:
            self._held.popitem(last=False)
        self._held[key] = range(found, found + count)
        return found

    def clear(self) -> None:
        """No program has a line."""
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)

    def _gap(self, count: int) -> int | None:
        first = self._lines.start
        for held in sorted(self._held.values(), key=lambda lines: lines.start):
            if held.start - first >= count:
                return first
            first = held.stop
        return first if self._lines.stop - first >= count else None


class ResidentPrograms:
    """What one device has loaded. Not safe for threads: the device's lock is held."""

    def __init__(self, lines: range, address: int, write: Write) -> None:
        """`lines`: that can be loaded. `address`: device memory for the images, as long as these;
        `write` stores into it.
        """
        self._first = lines.start
        self._lines = ProgramLines(lines)
        self._address = address
        self._write = write
        self.loads = 0
        """Programs loaded so far."""

    def clear(self) -> None:
        """The device has been reset, or something went wrong: nothing is known to be there."""
        self._lines.clear()

    def segments(self, data: bytes) -> Iterator[CommandSegment]:
        """The packets in `data` with lines in place of placeholders, and LOADs.

        Run each before the next is asked for: images of the next use the memory of its own.
        """
        packets = np.frombuffer(data, np.uint32).reshape(-1, _PACKET_WORDS)
        rows = np.flatnonzero(
            (packets[:, 0] == Opcode.VECTOR) & (packets[:, _PROGRAM_WORD] >= FIRST_PLACEHOLDER)
        )
        if not rows.size:
            yield CommandSegment(data, 0)
            return
        yield from self._loading(packets.copy(), rows.tolist())

    def _loading(
        self, packets: NDArray[np.uint32], rows: Sequence[int]
    ) -> Iterator[CommandSegment]:
        segment = _Segment(packets, 0)
        for row in rows:
            key = int(packets[row, _PROGRAM_WORD])
            program = named_by(key)
            if program is None:  # no placeholder of ours: the device says NOT_LOADED
                continue
            count = lines_of(program)
            line = self._lines.find(key)
            if line is None:
                line = self._placed(key, count, program.name)
                if segment.has_staged(range(line, line + count)):
                    yield segment.until(row)
                    segment = _Segment(packets, row)
                segment.load(row, range(line, line + count), self._staged(pack(program), line))
            segment.use(range(line, line + count))
            packets[row, _PROGRAM_WORD] = line
        yield segment.until(len(packets))

    def _placed(self, key: int, count: int, name: str) -> int:
        try:
            return self._lines.place(key, count)
        except ValueError as error:
            raise InfrastructureError(f"vector program {name} needs {error} to load") from None

    def _staged(self, image: bytes, line: int) -> bytes:
        """The LOAD of an image, which is in memory now."""
        self.loads += 1
        address = self._address + (line - self._first) * LINE_BYTES
        self._write(address, np.frombuffer(image, np.uint8))
        return Packet(Opcode.LOAD, 0, address, 0, 0, (line, len(image) // LINE_BYTES)).pack()


def resident_programs(
    lines: range, memory: MemoryMap, allocator: Allocator, write: Write
) -> ResidentPrograms:
    """None loaded. Their images have pages of their own: what the driver alone changes."""
    pages = -(-len(lines) * LINE_BYTES // _PAGE_BYTES)
    start = allocator.alloc((pages + 1) * _PAGE_BYTES)
    return ResidentPrograms(lines, start + (memory.base - start) % _PAGE_BYTES, write)
