# SPDX-License-Identifier: Apache-2.0
"""Queueing packets to a device that takes none: an end, and who is to blame."""

from __future__ import annotations

import asyncio

import pytest

from driver.isa import Opcode, Packet, csr
from tb.agents.packet_queue import PacketQueue, Way
from tb.env.verdict import Mismatch

_ENTRIES = 4


class _Registers:
    """A device that takes its first packet in read number `moves`."""

    def __init__(self, moves: int) -> None:
        self.moves, self.reads, self.tails = moves, 0, list[int]()

    async def read(self, offset: int) -> int:
        self.reads += 1
        taken = self.reads >= self.moves
        return (
            int(taken) if offset == csr.RING_HEAD else csr.STATUS_CSR_QUEUE_FULL_MASK * (not taken)
        )

    async def write(self, offset: int, value: int) -> None:
        if offset == csr.RING_TAIL:
            self.tails.append(value)

    async def store(self, address: int, data: bytes) -> None: ...


def _queue(device: _Registers, way: Way) -> None:
    queue = PacketQueue(device.read, device.write, device.store, 0, _ENTRIES)
    asyncio.run(queue.queue([Packet(Opcode.NOP)] * _ENTRIES, way))


def test_a_device_that_takes_a_packet_late_gets_all() -> None:
    device = _Registers(moves=3000)
    _queue(device, Way.RING)
    laps = len(device.tails) % ((1 << 16) // _ENTRIES)
    assert device.tails[-1] == laps * _ENTRIES > 0 and device.reads == 3000
    device = _Registers(moves=3000)
    _queue(device, Way.REGISTERS)
    assert device.reads == 3000 + _ENTRIES - 1


@pytest.mark.parametrize(
    ("way", "message"),
    [(Way.RING, "hung: RING_HEAD is 0 in"), (Way.REGISTERS, "hung: the queue of CMD_PUSH is full")],
)
def test_a_device_that_takes_none_is_a_failure_of_the_device(way: Way, message: str) -> None:
    with pytest.raises(Mismatch, match=message):
        _queue(_Registers(moves=1 << 30), way)
