# SPDX-License-Identifier: Apache-2.0
"""Commands, layered on the agents of the pins: a packet becomes memory and register accesses."""

from __future__ import annotations

from pyuvm import (
    ConfigDB,
    uvm_agent,
    uvm_analysis_port,
    uvm_driver,
    uvm_sequence_item,
    uvm_sequencer,
    uvm_subscriber,
)

from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE
from driver.isa import PACKET_BYTES, Packet, csr
from tb.agents.axil import AxilAgent, AxilItem
from tb.agents.channel import OKAY, SLVERR
from tb.agents.host import HostAgent, HostItem
from tb.agents.packet_queue import PacketQueue, Way
from tb.env.verdict import expect, located
from tb.seqs.access import perform


class CommandItem(uvm_sequence_item):
    """Packets queued in one go, by one doorbell or one push each."""

    def __init__(self, packets: list[Packet], way: Way) -> None:
        super().__init__("command")
        self.packets = packets
        self.way = way


class CommandDriver(uvm_driver):
    """Queues packets on the pins: registers by s_axil, the rings by s_axi."""

    def build_phase(self) -> None:
        self.axil: AxilAgent = ConfigDB().get(self, "", "axil")
        self.host: HostAgent = ConfigDB().get(self, "", "host")
        self.where = ConfigDB().get(self, "", "where")
        entries = ConfigDB().get(self, "", "ring_entries")
        self.queue, self.second = (
            PacketQueue(self.read, self.write, self._store, base, entries, registers)
            for base, registers in zip(
                ConfigDB().get(self, "", "ring_bases"), (FIRST_QUEUE, SECOND_QUEUE), strict=True
            )
        )

    async def run_phase(self) -> None:
        while True:
            item: CommandItem = await self.seq_item_port.get_next_item()
            queue = self.second if item.way is Way.SECOND_RING else self.queue
            with located(self.where):
                await queue.queue(item.packets, item.way)
            self.seq_item_port.item_done()

    async def read(self, offset: int) -> int:
        """A register, on the pins; Mismatch for an answer that is an error."""
        return (await self._access(AxilItem(offset), OKAY)).data

    async def write(self, offset: int, value: int) -> None:
        """Likewise."""
        await self._access(AxilItem(offset, value), OKAY)

    async def refused(self, offset: int, value: int) -> None:
        """Mismatch unless a read of the offset, and a write of the value, are answered SLVERR."""
        await self._access(AxilItem(offset), SLVERR)
        await self._access(AxilItem(offset, value), SLVERR)

    async def _access(self, item: AxilItem, response: int) -> AxilItem:
        await perform(self.axil.sequencer, item)
        how = "write to" if item.write else "read of"
        expect(f"response to a {how} register {item.offset:#05x}", item.response, response)
        return item

    async def _store(self, address: int, data: bytes) -> None:
        item = HostItem(address, data)
        await perform(self.host.sequencer, item)
        expect(f"response to a store of {len(data)} bytes at {address:#x}", item.response, OKAY)


class CommandMonitor(uvm_subscriber):
    """Sees packets in the register accesses that queue them: pushes, and doorbells of the ring."""

    def build_phase(self) -> None:
        self.ap = uvm_analysis_port("ap", self)
        self.memory = ConfigDB().get(self, "", "memory")
        bases: tuple[int, int] = ConfigDB().get(self, "", "ring_bases")
        self.ring_entries: int = ConfigDB().get(self, "", "ring_entries")
        self._words = [0] * csr.CMD_WORD_COUNT
        self._rings = {
            csr.RING_TAIL: (bases[0], Way.RING),
            csr.RING1_TAIL: (bases[1], Way.SECOND_RING),
        }
        self._tails = dict.fromkeys(self._rings, 0)

    def write(self, item: AxilItem) -> None:
        """One access, from the monitor of the pins."""
        if not item.write:
            return
        word = (item.offset - csr.CMD_WORD) // 4
        if 0 <= word < len(self._words):
            self._words[word] = item.data
        elif item.offset == csr.CMD_PUSH:
            data = b"".join(value.to_bytes(4, "little") for value in self._words)
            self.ap.write(CommandItem([Packet.unpack(data)], Way.REGISTERS))
        elif item.offset in self._rings:
            base, way = self._rings[item.offset]
            packets: list[Packet] = []
            tail = item.data % self.ring_entries
            while self._tails[item.offset] != tail:
                address = base + self._tails[item.offset] * PACKET_BYTES
                packets.append(Packet.unpack(self.memory.read(address, PACKET_BYTES)))
                self._tails[item.offset] = (self._tails[item.offset] + 1) % self.ring_entries
            if packets:
                self.ap.write(CommandItem(packets, way))


class CommandAgent(uvm_agent):
    """Sequencer, driver and monitor of commands."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = CommandDriver("driver", self)
        self.monitor = CommandMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)
