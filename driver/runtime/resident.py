# SPDX-License-Identifier: Apache-2.0
"""The loaded programs of one device: which lines they have, and the LOAD packets for new ones.

A packet that names a placeholder (driver.runtime.vector_programs) gets the program's line. A
program that is not there is loaded just before it, in place of those used least recently.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.errors import InfrastructureError
from driver.isa import PACKET_BYTES, Opcode, Packet
from driver.isa.image import LINE_BYTES, lines_of, pack
from driver.runtime.vector_programs import FIRST_PLACEHOLDER, named_by

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
        first = begin = 0
        parts: list[bytes] = []
        loads: list[int] = []
        staged: list[range] = []
        for row in rows:
            key = int(packets[row, _PROGRAM_WORD])
            program = named_by(key)
            if program is None:  # no placeholder of ours: the device says NOT_LOADED
                continue
            line = self._lines.find(key)
            if line is None:
                count = lines_of(program)
                line = self._placed(key, count, program.name)
                lines = range(line, line + count)
                parts.append(packets[begin:row].tobytes())
                if any(lines.start < one.stop and one.start < lines.stop for one in staged):
                    yield CommandSegment(b"".join(parts), first, tuple(loads))
                    first, parts, loads, staged = row, [], [], []
                parts.append(self._staged(pack(program), line))
                loads.append(row - first + len(loads))
                staged.append(lines)
                begin = row
            packets[row, _PROGRAM_WORD] = line
        parts.append(packets[begin:].tobytes())
        yield CommandSegment(b"".join(parts), first, tuple(loads))

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
