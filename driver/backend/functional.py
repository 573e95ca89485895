# SPDX-License-Identifier: Apache-2.0
"""Registers and command queues of the NPU without its clock: the base of the models in Python.

Behaves as docs/registers.md says, but time passes only when the host looks: a register or memory
read lets one queued command finish after it is answered, wait_interrupt as many as it takes.
Commands are fetched here and executed by the subclass; the two queues take turns. Cycle counts
count host accesses.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from driver.backend.mapped_memory import MappedMemory
from driver.backend.protocol import Feature
from driver.backend.queues import QUEUES, QueueState, writable_fields
from driver.backend.registers import COMMAND_WORDS, check_register
from driver.backend.shared_memory import PAGE_BYTES, FaultRange
from driver.config import HwConfig
from driver.errors import SimulatorTimeout
from driver.isa import (
    COMPLETION_BYTES,
    DEVICE_ID,
    FLAGS,
    ISA_VERSION,
    PACKET_BYTES,
    CompletionRecord,
    DeviceState,
    ErrorCode,
    Packet,
    csr,
)
from driver.isa.image import PROGRAM_RAM, PROGRAM_RAM_LINES
from driver.isa.programs import BOOT_DIGEST

_WORD_MASK = 0xFFFF_FFFF
_QUEUE_DEPTH = 4
_MAX_LOG2_ENTRIES = 16
_WRITABLE: dict[int, int] = {
    csr.IRQ_ENABLE: csr.IRQ_ENABLE_COMPLETE_MASK
    | csr.IRQ_ENABLE_EMPTY_MASK
    | csr.IRQ_ENABLE_ERROR_MASK
    | csr.IRQ_ENABLE_COMPLETE1_MASK
    | csr.IRQ_ENABLE_EMPTY1_MASK,
    **writable_fields(),
    **dict.fromkeys(COMMAND_WORDS, _WORD_MASK),
}
"""Offset → bits that keep what software writes."""
_COMPLETE_IRQ = (csr.IRQ_STATUS_COMPLETE_MASK, csr.IRQ_STATUS_COMPLETE1_MASK)
_EMPTY_IRQ = (csr.IRQ_STATUS_EMPTY_MASK, csr.IRQ_STATUS_EMPTY1_MASK)
_PAIRS = (
    csr.CYCLE_LO,
    csr.BUSY_CYCLES_LO,
    csr.ACTIVE_CYCLES_LO,
    csr.OPERAND_STALL_LO,
    csr.RESULT_STALL_LO,
    csr.READ_BEATS_LO,
    csr.WRITE_BEATS_LO,
    csr.COMMANDS_LO,
)


class FunctionalBackend(ABC):
    """A device that computes in the host's thread. A subclass executes single packets."""

    features: ClassVar = frozenset({Feature.MAPPED_MEMORY, Feature.DIRTY_PAGES, Feature.FAULTS})

    def __init__(self, config: HwConfig, memory: MappedMemory | None = None) -> None:
        """`memory`: the device's, instead of one of its own."""
        self._config = config
        self._base_address = config.memory.base  # of the memory; the configuration sorts for it
        self._memory = memory or MappedMemory(self._base_address, config.memory.limit)
        self._faults: list[FaultRange] = []
        self._record_pages: set[int] = set()
        self._start()

    @abstractmethod
    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        """Check and run one command on the memory; NONE, or why it failed. `seq` is its number."""

    # ------------------------------------------------------------------ Backend verbs
    def read_csr(self, offset: int) -> int:
        """See Backend."""
        check_register(offset)
        value = self._value(offset)
        self._cycle += 1
        self._step()
        return value

    def write_csr(self, offset: int, value: int) -> None:
        """See Backend."""
        check_register(offset, value)
        self._cycle += 1
        if offset in _WRITABLE:
            self._registers[offset] = value & _WRITABLE[offset]
        elif offset == csr.CTRL:
            self._control(value)
        elif offset == csr.IRQ_STATUS:
            self._irq_status &= ~value
        elif offset == csr.CMD_PUSH and value & csr.CMD_PUSH_PUSH_MASK:
            if len(self._queue) < _QUEUE_DEPTH:
                self._queue.append(
                    struct.pack("<16I", *(self._registers[w] for w in COMMAND_WORDS))
                )
        elif offset == csr.PERF_CTRL and value & csr.PERF_CTRL_CLEAR_MASK:
            self._commands = 0

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """See Backend."""
        data = self._memory.read(address, size_bytes)
        self._step()
        return data

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """See Backend."""
        self._memory.write(address, data)

    def wait_interrupt(self, timeout_s: float) -> int:
        """See Backend. Times out at once when nothing is queued that could raise irq."""
        while not self._irq_status & self._registers[csr.IRQ_ENABLE]:
            if not self._step():
                raise SimulatorTimeout(
                    f"no interrupt: nothing is queued (limit {timeout_s:g} s not awaited)"
                )
        return self._irq_status

    def reset(self) -> None:
        """See Backend."""
        self._start()

    def _start(self) -> None:
        """Registers and queues as after a reset."""
        self._registers = dict.fromkeys(_WRITABLE, 0)
        self._queue: deque[bytes] = deque()
        self._latched: dict[int, int] = {}
        self._queues = tuple(QueueState(queue, number) for number, queue in enumerate(QUEUES))
        self._last_queue = 1
        self._commands = 0
        self._cycle: int = 0
        self._irq_status: int = 0
        self._state = DeviceState.IDLE
        self._error = ErrorCode.NONE
        self._error_queue = 0
        self._error_seq = 0

    def close(self) -> None:
        """See Backend. The memory goes with the last view of it."""
        self._queue.clear()

    # ------------------------------------------------------------------ inspection
    @property
    def memory(self) -> NDArray[np.uint8]:
        """See InspectableBackend."""
        return self._memory.array

    def dirty_pages(self) -> list[int]:
        """See InspectableBackend."""
        return sorted(self._record_pages)

    def clear_dirty(self) -> None:
        """See InspectableBackend."""
        self._record_pages.clear()

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """See InspectableBackend."""
        self._faults = list(ranges)

    # ------------------------------------------------------------------ registers
    def _value(self, offset: int) -> int:
        if offset in self._registers:
            return self._registers[offset]
        if offset in _PAIRS:
            value = {csr.CYCLE_LO: self._cycle, csr.COMMANDS_LO: self._commands}.get(offset, 0)
            self._latched[offset + 4] = value >> 32
            return value & _WORD_MASK
        config = self._config
        values = {
            csr.ID: DEVICE_ID,
            csr.VERSION: ISA_VERSION,
            csr.CONFIG: config.array_size << csr.CONFIG_ARRAY_SIZE_LSB
            | config.bus_bits << csr.CONFIG_BUS_BITS_LSB
            | config.fma_latency << csr.CONFIG_FMA_LATENCY_LSB,
            csr.PROGRAM_RAM: PROGRAM_RAM << csr.PROGRAM_RAM_FIRST_LSB
            | PROGRAM_RAM_LINES << csr.PROGRAM_RAM_LINES_LSB,
            csr.PROGRAM_DIGEST_LO: BOOT_DIGEST & _WORD_MASK,
            csr.PROGRAM_DIGEST_HI: BOOT_DIGEST >> 32,
            csr.STATUS: self._status(),
            csr.ERROR_CODE: self._error | self._error_queue << csr.ERROR_CODE_QID_LSB,
            csr.ERROR_SEQ: self._error_seq,
            csr.IRQ_STATUS: self._irq_status,
            **{queue.registers.completed: queue.seq for queue in self._queues},
            **{queue.registers.head: self._head(queue) for queue in self._queues},
            **self._latched,
        }
        return int(values.get(offset, 0))

    def _status(self) -> int:
        state = DeviceState.BUSY if self._pending() else self._state
        first_empty, second_empty = (
            self._head(queue) == self._tail(queue) for queue in self._queues
        )
        return (
            state << csr.STATUS_STATE_LSB
            | (not self._queue) << csr.STATUS_CSR_QUEUE_EMPTY_LSB
            | (len(self._queue) == _QUEUE_DEPTH) << csr.STATUS_CSR_QUEUE_FULL_LSB
            | first_empty << csr.STATUS_RING_EMPTY_LSB
            | second_empty << csr.STATUS_RING1_EMPTY_LSB
        )

    def _control(self, value: int) -> None:
        if value & csr.CTRL_SOFT_RESET_MASK:
            self.reset()
        elif value & csr.CTRL_ERROR_ACK_MASK and self._state == DeviceState.ERROR:
            self._queue.clear()
            for queue in self._queues:
                queue.head = self._tail(queue)
            self._state = DeviceState.IDLE
            self._error, self._error_queue = ErrorCode.NONE, 0

    # ------------------------------------------------------------------ command queues
    def _entries(self, control: int) -> int:
        log2 = (control & csr.RING_CTRL_LOG2_ENTRIES_MASK) >> csr.RING_CTRL_LOG2_ENTRIES_LSB
        return 1 << min(log2, _MAX_LOG2_ENTRIES)

    def _head(self, queue: QueueState) -> int:
        """Modulo the slots that the ring has now, which may be fewer than it had."""
        return queue.head % self._entries(self._registers[queue.registers.control])

    def _tail(self, queue: QueueState) -> int:
        registers = queue.registers
        return self._registers[registers.tail] % self._entries(self._registers[registers.control])

    def _waits(self, queue: QueueState) -> bool:
        """Whether it has a packet: the first one also behind CMD_PUSH."""
        enabled = self._registers[queue.registers.control] & csr.RING_CTRL_ENABLE_MASK
        in_ring = bool(enabled) and self._head(queue) != self._tail(queue)
        return in_ring or (queue.number == 0 and bool(self._queue))

    def _pending(self) -> bool:
        return self._state != DeviceState.ERROR and any(map(self._waits, self._queues))

    def _step(self) -> bool:
        """Let the next command finish, the queues in turn. False: none waits."""
        if not self._pending():
            return False
        queue = self._queues[1 - self._last_queue]
        if not self._waits(queue):
            queue = self._queues[self._last_queue]
        self._last_queue = queue.number
        if queue.number == 0 and self._queue:
            packet: bytes | None = self._queue.popleft()
        else:
            packet = self._fetched(queue)
        self._finish(queue, packet)
        return True

    def _fetched(self, queue: QueueState) -> bytes | None:
        """The next packet of its ring; None when the bus refuses it."""
        address = self._base(queue.registers.base) + self._head(queue) * PACKET_BYTES
        failed = self._bus_fails(address, PACKET_BYTES, write=False)
        slots = self._entries(self._registers[queue.registers.control])
        queue.head = (self._head(queue) + 1) % slots
        return None if failed else self._memory.read(address, PACKET_BYTES)

    def _base(self, low: int) -> int:
        return self._registers[low] | self._registers[low + 4] << 32

    def _finish(self, queue: QueueState, packet: bytes | None) -> None:
        """Run a packet (None: it could not be read), leave its record, raise its interrupts."""
        code = ErrorCode.BUS_READ if packet is None else self._execute(packet, queue.seq)
        command = Packet.unpack(packet if packet is not None else bytes(PACKET_BYTES))
        recorded = self._record(queue, code, command.opcode)
        code = code if code or recorded else ErrorCode.BUS_WRITE
        if code:
            self._state, self._error, self._error_seq = DeviceState.ERROR, code, queue.seq
            self._error_queue = queue.number
            self._irq_status |= csr.IRQ_STATUS_ERROR_MASK
        else:
            self._state = DeviceState.DONE
            if command.flags & FLAGS["IRQ"].mask:
                self._irq_status |= _COMPLETE_IRQ[queue.number]
        queue.seq = (queue.seq + 1) & _WORD_MASK
        self._commands += 1
        if not code and not self._waits(queue):
            self._irq_status |= _EMPTY_IRQ[queue.number]

    def _record(self, queue: QueueState, code: ErrorCode, opcode: int) -> bool:
        """Write the completion record, if enabled. False when DRAM refuses it."""
        control = self._registers[queue.registers.records_control]
        if not control & csr.CPL_CTRL_ENABLE_MASK:
            return True
        slot = queue.seq % self._entries(control)
        address = self._base(queue.registers.records) + slot * COMPLETION_BYTES
        if self._bus_fails(address, COMPLETION_BYTES, write=True):
            return False
        record = CompletionRecord(queue.seq, code, 0, 0, 0, 0, 0, 0, 0, opcode)
        self._memory.write(address, record.pack())
        self._record_pages.add(address - (address - self._base_address) % PAGE_BYTES)
        return True

    def _bus_fails(self, address: int, size_bytes: int, *, write: bool) -> bool:
        """True when DRAM answers the command processor's own access with an error."""
        return not self._memory.contains(address, size_bytes) or any(
            fault.begin < address + size_bytes
            and address < fault.end
            and (fault.on_write if write else fault.on_read)
            for fault in self._faults
        )
