# SPDX-License-Identifier: Apache-2.0
"""The ways into the device, and the way its answers come back.

CommandRing: 64-byte slots in device memory, head moved by the device, tail by the driver.
CommandRegisters: the sixteen CMD_WORD registers and their queue. CompletionRing: one record per
command. None of them waits: that is the Device's business.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from driver.backend import Backend
from driver.backend.accesses import Access, ReadMemory
from driver.backend.queues import FIRST_QUEUE, QueueRegisters
from driver.errors import InfrastructureError, InputError
from driver.isa import COMPLETION_BYTES, PACKET_BYTES, CompletionRecord, csr

_WORD_MASK = 0xFFFF_FFFF
_RECORDS = np.dtype({"names": ["seq"], "formats": ["<u4"], "itemsize": COMPLETION_BYTES})
MAX_LOG2_ENTRIES = 16


def log2_entries(entries: int) -> int:
    """The register value for a ring of `entries` slots. InputError unless a power of two ≤ 2¹⁶."""
    log2 = entries.bit_length() - 1
    if entries != 1 << max(log2, 0) or not 1 <= log2 <= MAX_LOG2_ENTRIES:
        raise InputError("device", "ring_entries", entries, "a power of two from 2 to 65536")
    return log2


def write_address(backend: Backend, low_offset: int, address: int) -> None:
    """Write a 64-bit address into a LO/HI register pair."""
    backend.write_csr(low_offset, address & _WORD_MASK)
    backend.write_csr(low_offset + 4, address >> 32)


class CommandPort(Protocol):
    """Somewhere packets can be queued."""

    def push(self, packets: memoryview) -> int:
        """Queue as many of the packets in these bytes as fit now, in order; how many that was."""
        ...


class CommandRing:
    """The driver's end of a command ring. Head equal to tail is empty, so one slot stays free."""

    def __init__(
        self, backend: Backend, base: int, entries: int, registers: QueueRegisters = FIRST_QUEUE
    ) -> None:
        self._backend = backend
        self._registers = registers
        self._base = base
        self._entries = entries
        self._log2 = log2_entries(entries)
        self._tail = 0
        self._head = 0
        """Of the device, when it was last read: it may have moved on, never back."""

    @property
    def addresses(self) -> range:
        """The bytes of the ring."""
        return range(self._base, self._base + self._entries * PACKET_BYTES)

    def start(self) -> None:
        """Point the device at the ring, empty, and let it fetch."""
        write_address(self._backend, self._registers.base, self._base)
        self.resync()
        control = self._log2 << csr.RING_CTRL_LOG2_ENTRIES_LSB | csr.RING_CTRL_ENABLE_MASK
        self._backend.write_csr(self._registers.control, control)

    def resync(self) -> None:
        """Take the device's head as the empty ring, after it was reset or dropped its queue."""
        self._tail = self._head = self._backend.read_csr(self._registers.head)
        self._backend.write_csr(self._registers.tail, self._tail)

    def push(self, packets: memoryview) -> int:
        """See CommandPort. One doorbell for all of them, after they are in memory."""
        if len(packets) > self._free() * PACKET_BYTES:
            self._head = self._backend.read_csr(self._registers.head)
        data = packets[: self._free() * PACKET_BYTES]
        if not data:
            return 0
        until_wrap = (self._entries - self._tail) * PACKET_BYTES
        self._backend.write_memory(self._base + self._tail * PACKET_BYTES, data[:until_wrap])
        if len(data) > until_wrap:
            self._backend.write_memory(self._base, data[until_wrap:])
        taken = len(data) // PACKET_BYTES
        self._tail = (self._tail + taken) % self._entries
        self._backend.write_csr(self._registers.tail, self._tail)
        return taken

    def _free(self) -> int:
        return (self._head - self._tail - 1) % self._entries


class CommandRegisters:
    """The registers' own queue of four packets, which goes before the ring."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def push(self, packets: memoryview) -> int:
        """See CommandPort. Nothing is pushed into a full queue, where it would be dropped."""
        count = len(packets) // PACKET_BYTES
        for number in range(count):
            if self._backend.read_csr(csr.STATUS) & csr.STATUS_CSR_QUEUE_FULL_MASK:
                return number
            data = packets[number * PACKET_BYTES : (number + 1) * PACKET_BYTES]
            for index in range(csr.CMD_WORD_COUNT):
                word = int.from_bytes(data[4 * index : 4 * index + 4], "little")
                self._backend.write_csr(csr.CMD_WORD + 4 * index, word)
            self._backend.write_csr(csr.CMD_PUSH, csr.CMD_PUSH_PUSH_MASK)
        return count


class CompletionRing:
    """Where the device leaves one record per command, at its sequence number modulo the slots."""

    def __init__(
        self, backend: Backend, base: int, entries: int, registers: QueueRegisters = FIRST_QUEUE
    ) -> None:
        self._backend = backend
        self._registers = registers
        self._base = base
        self._entries = entries
        self._log2 = log2_entries(entries)

    @property
    def addresses(self) -> range:
        """The bytes of the ring."""
        return range(self._base, self._base + self._entries * COMPLETION_BYTES)

    @property
    def entries(self) -> int:
        """Records kept before the oldest is written over."""
        return self._entries

    def start(self) -> None:
        """Point the device at the records and have it write them."""
        write_address(self._backend, self._registers.records, self._base)
        control = self._log2 << csr.CPL_CTRL_LOG2_ENTRIES_LSB | csr.CPL_CTRL_ENABLE_MASK
        self._backend.write_csr(self._registers.records_control, control)

    def reads(self, first_seq: int, count: int) -> list[Access]:
        """The accesses that read the records of so many commands from first_seq on."""
        assert count <= self._entries, "records already written over"
        slot = first_seq % self._entries
        before_wrap = min(count, self._entries - slot)
        return [
            ReadMemory(self._base + first * COMPLETION_BYTES, number * COMPLETION_BYTES)
            for first, number in ((slot, before_wrap), (0, count - before_wrap))
            if number
        ]

    @staticmethod
    def records(first_seq: int, data: bytes) -> list[CompletionRecord]:
        """The records in `data`, of commands first_seq, first_seq + 1, … (modulo 2³²).

        InfrastructureError when a slot holds another command's record, or none.
        """
        slots = [data[at : at + COMPLETION_BYTES] for at in range(0, len(data), COMPLETION_BYTES)]
        try:
            records = [CompletionRecord.unpack(slot) for slot in slots]
        except ValueError as error:
            raise InfrastructureError(f"completion records from {first_seq} on: {error}") from error
        for index, record in enumerate(records):
            seq = (first_seq + index) & _WORD_MASK
            if record.seq != seq:
                raise InfrastructureError(f"completion record of command {seq}: found {record}")
        return records

    @classmethod
    def check(cls, first_seq: int, data: bytes) -> None:
        """As `records`, where only that they are there is asked."""
        found = np.frombuffer(data, _RECORDS)["seq"]
        if np.any(found != (first_seq + np.arange(found.size)) & _WORD_MASK):
            cls.records(first_seq, data)  # raises with the record
