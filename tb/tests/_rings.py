# SPDX-License-Identifier: Apache-2.0
"""Rings and completion records of other sizes than the ones that the other tests have."""

from __future__ import annotations

from dataclasses import replace

from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE, QueueRegisters
from driver.isa import COMPLETION_BYTES, PACKET_BYTES, csr
from tb.agents.packet_queue import Way
from tb.env.base_test import BusTest
from tb.env.verdict import expect
from tb.seqs.packets import fill_words, plain_copy

_SIZES = (1, 2, 5, 16, 31)
"""log2 of the entries. More than 16 count as 16."""
_LARGEST = 16
_USED = 256
"""Entries, more than all commands of the test: of larger rings no other one is touched."""
_COMMANDS = 10
"""More than the smaller rings have entries: they are gone round."""
_DISTANCES = range(20, 160, 10)
"""Cycles behind a doorbell in which its packet is on its way, and some behind that."""
_COPIED_BEATS = 4096
"""Of a COPY that runs until all this has happened."""
_FETCHED = 500
"""Cycles, more than a packet takes that is on its way when its ring is disabled."""


class RingSizes(BusTest):
    """Each queue with rings and records of every kind of size, gone round where that is possible;
    without records, of which none is written then; and disabled while it fetches a packet."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        for way in (Way.RING, Way.SECOND_RING):
            await self._disabled_early(way)
        await self._disabled_aside()
        for queue in (FIRST_QUEUE, SECOND_QUEUE):
            for ring, records in zip(_SIZES, reversed(_SIZES), strict=True):
                await self._sized(queue, ring, records, enabled=True)
            await self._sized(queue, 2, 2, enabled=False)

    async def _disabled_aside(self) -> None:
        """A packet that waits for the other queue when its ring is disabled runs."""
        control = await self.read(SECOND_QUEUE.control)
        long = plain_copy(self.arena, _COPIED_BEATS * self.config.bus_bits // 8)
        waits = replace(plain_copy(self.arena, 64), src1=long.dst)
        self.place()
        await self.command([long], Way.RING)
        await self.irq_after(_FETCHED)
        await self.command([waits], Way.SECOND_RING)
        await self.command([fill_words(self.arena, 1)], Way.RING)
        await self.irq_after(_FETCHED)
        await self.write(SECOND_QUEUE.control, control & ~csr.RING_CTRL_ENABLE_MASK)
        await self.settle()
        await self.write(SECOND_QUEUE.control, control)
        await self.command([fill_words(self.arena, 1)], Way.SECOND_RING)
        await self.settle()

    async def _disabled_early(self, way: Way) -> None:
        """A packet that is on its way when its ring is disabled runs."""
        queue = way.registers
        control = await self.read(queue.control)
        for distance in _DISTANCES:
            await self.command([fill_words(self.arena, 1)], way)
            await self.irq_after(distance)
            await self.write(queue.control, control & ~csr.RING_CTRL_ENABLE_MASK)
            await self.irq_after(_FETCHED)
            done, expected = await self.read(queue.completed), self.model.read_csr(queue.completed)
            expect(f"commands completed, ring disabled {distance} cycles later", done, expected)
            await self.write(queue.control, control)
            await self.settle()

    async def _sized(
        self, queue: QueueRegisters, ring: int, records: int, *, enabled: bool
    ) -> None:
        """Commands one doorbell at a time, each as many as the ring holds."""
        slots, kept = (1 << min(log2, _LARGEST) for log2 in (ring, records))
        ring_base = self.arena.place(min(slots, _USED) * PACKET_BYTES, PACKET_BYTES)
        size_bytes = min(kept, _USED) * COMPLETION_BYTES
        records_base = self.arena.place(size_bytes, COMPLETION_BYTES)
        self.found.moved_records.append(range(records_base, records_base + size_bytes))
        size = csr.RING_CTRL_LOG2_ENTRIES_LSB
        await self.write(queue.control, ring << size)
        for offset, base in ((queue.base, ring_base), (queue.records, records_base)):
            await self.write(offset, base & 0xFFFF_FFFF)
            await self.write(offset + 4, base >> 32)
        tail = await self.read(queue.head)
        await self.write(queue.tail, tail)
        await self.write(queue.control, ring << size | csr.RING_CTRL_ENABLE_MASK)
        await self.write(queue.records_control, records << size | enabled)
        left = _COMMANDS
        while left:
            count = min(left, slots - 1)
            for _ in range(count):
                packet = fill_words(self.arena, 1)
                address = ring_base + tail % slots * PACKET_BYTES
                self.arena.contents.append((address, packet.pack()))
                tail = (tail + 1) % slots
            self.place()
            self.found.idle = False
            await self.write(queue.tail, tail)
            await self.settle()
            expect(f"head of a ring of {slots}", await self.read(queue.head), tail)
            left -= count
        last = (await self.read(queue.completed) - 1) % kept
        record = self.memory.read(records_base + last * COMPLETION_BYTES, COMPLETION_BYTES)
        self.found.compare_bytes("records", records_base + last * COMPLETION_BYTES, record)
