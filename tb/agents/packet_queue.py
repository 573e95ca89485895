# SPDX-License-Identifier: Apache-2.0
"""How software queues packets: by the ring in memory, or by the registers. Knows no pins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE, QueueRegisters
from driver.isa import PACKET_BYTES, Packet, csr
from tb.env.verdict import Mismatch

_INDICES = csr.RING_TAIL_INDEX_MASK + 1
"""Of RING_TAIL."""
MOST_READS = 20_000
"""Of a register, 4 cycles each, while the device does nothing: no command of a bench is as long.
The limit of time of a test is further away: these reads make a simulation slow."""


class Way(Enum):
    """How a packet gets into the device."""

    RING = "ring"
    SECOND_RING = "second ring"
    REGISTERS = "registers"

    @property
    def registers(self) -> QueueRegisters:
        """Those of the queue that it leads to."""
        return SECOND_QUEUE if self is Way.SECOND_RING else FIRST_QUEUE


FIRST_QUEUE_WAYS = (Way.RING, Way.REGISTERS)
"""Into the queue that every test has; the second ring is brought up where a test uses it."""


@dataclass
class PacketQueue:
    """Queues packets; waits for free entries, but never for completion."""

    read: Callable[[int], Awaitable[int]]
    """A register at an offset."""
    write: Callable[[int, int], Awaitable[None]]
    """Offset, value."""
    store: Callable[[int, bytes], Awaitable[None]]
    """Bytes at an address of device memory."""
    ring_base: int
    ring_entries: int
    registers: QueueRegisters = FIRST_QUEUE
    _tail: int = 0
    _laps: int = 0

    async def queue(self, packets: list[Packet], way: Way) -> None:
        """By one doorbell, or one push each."""
        if way is Way.REGISTERS:
            await self._push(packets)
        else:
            await self._ring(packets)

    async def resync(self) -> None:
        """Start at the device's head again, after a reset or a dropped queue."""
        self._tail = await self.read(self.registers.head)
        await self.write(self.registers.tail, self._tail)

    async def _ring(self, packets: list[Packet]) -> None:
        for packet in packets:
            following = (self._tail + 1) % self.ring_entries
            for _ in range(MOST_READS):
                if await self.read(self.registers.head) != following:
                    break
                await self._ring_doorbell()
            else:
                raise Mismatch(f"hung: RING_HEAD is {following} in {MOST_READS} reads")
            await self.store(self.ring_base + self._tail * PACKET_BYTES, packet.pack())
            self._tail = following
        await self._ring_doorbell()

    async def _ring_doorbell(self) -> None:
        """By a number beyond the ring's, mostly: the device takes it modulo the number of slots."""
        self._laps = (self._laps + 1) % (_INDICES // self.ring_entries)
        await self.write(self.registers.tail, self._laps * self.ring_entries + self._tail)

    async def _push(self, packets: list[Packet]) -> None:
        for packet in packets:
            for _ in range(MOST_READS):
                if not await self.read(csr.STATUS) & csr.STATUS_CSR_QUEUE_FULL_MASK:
                    break
            else:
                raise Mismatch(f"hung: the queue of CMD_PUSH is full in {MOST_READS} reads")
            data = packet.pack()
            for at in range(0, PACKET_BYTES, 4):
                word = int.from_bytes(data[at : at + 4], "little")
                await self.write(csr.CMD_WORD + at, word)
            await self.write(csr.CMD_PUSH, csr.CMD_PUSH_PUSH_MASK)
