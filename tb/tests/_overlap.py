# SPDX-License-Identifier: Apache-2.0
"""The UVM tests behind TEST=overlap."""

from __future__ import annotations

import pyuvm

from driver.isa import Packet, csr
from tb.agents.packet_queue import Way
from tb.env.base_test import BusTest
from tb.env.verdict import Mismatch
from tb.seqs.dependent import dependent, shared_memory

_LIMIT = {"timeout_time": 4, "timeout_unit": "ms"}
"""Of simulated time: a device that hangs ends as a failure."""
_UNKNOWN_OPCODE = 0xFF


class _Streams(BusTest):
    """Streams of commands that share memory; what they leave is what one at a time leaves."""

    compares = ("registers", "memory")
    streams = 6
    commands = 40

    async def stimulus(self) -> None:
        for number in range(self.streams):
            memory = shared_memory(self.arena)
            packets = dependent(memory, self.commands)
            self.place()
            await self.command(packets, Way.WINDOW if number % 3 == 2 else Way.RING)
            await self.settle()


@pyuvm.test(**_LIMIT)
class Dependent(_Streams):
    """On a DRAM that answers evenly."""


@pyuvm.test(**_LIMIT)
class DependentStalls(_Streams):
    """On a DRAM whose channels hold back at random."""

    streams = 4
    dram_stall = 100


@pyuvm.test(**_LIMIT)
class FailsInTheMiddle(BusTest):
    """A command that fails its checks: all before it has finished, nothing behind it has begun."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        for before in range(6):
            memory = shared_memory(self.arena)
            packets = dependent(memory, before + 6)
            packets.insert(before, Packet(_UNKNOWN_OPCODE))
            self.place()
            await self.command(packets[:7], Way.RING)
            await self.settle()
            if not await self.read(csr.ERROR_CODE):
                raise Mismatch("the device accepted an opcode that does not exist")
            await self.acknowledge()
