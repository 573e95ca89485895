# SPDX-License-Identifier: Apache-2.0
"""Which commands a test has queued: what the text of a mismatch says about them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from driver.errors import NpuError
from driver.isa import Packet
from driver.runtime.vector_programs import packet_name
from golden.packets import destinations
from tb.agents.packet_queue import Way

_MOST_TRIED = 4096
"""Commands, the last ones, in which a byte of memory is looked for."""


class CommandHistory:
    """Commands in the order in which the test queued them, over all queues."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        """`read`: memory as it is now, for descriptors."""
        self._read = read
        self._commands: list[tuple[Packet, Way]] = []

    def note(self, packets: Sequence[Packet], way: Way) -> None:
        """The test queues these."""
        self._commands += [(packet, way) for packet in packets]

    def progress(self) -> str:
        """How many there are, and the last one."""
        count = len(self._commands)
        if not count:
            return "before any command"
        return f"{count} commands queued, the last one {self._name(count - 1)}"

    def writer_of(self, address: int) -> str:
        """The last command whose result has the byte at an address; "" for none."""
        count = len(self._commands)
        for at in range(count - 1, max(count - 1 - _MOST_TRIED, -1), -1):
            if self._writes(self._commands[at][0], address):
                return f"in the result of command {at + 1} of {count}, {self._name(at)}"
        return ""

    def _writes(self, packet: Packet, address: int) -> bool:
        try:
            return any(x.index_of(address) is not None for x in destinations(packet, self._read))
        except (NpuError, ValueError, LookupError, ArithmeticError, AssertionError, struct.error):
            return False  # a command that is wrong on purpose

    def _name(self, at: int) -> str:
        packet, way = self._commands[at]
        return f"{packet_name(packet)} by {way.value}"
