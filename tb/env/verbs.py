# SPDX-License-Identifier: Apache-2.0
"""What a test of the bench says to a device, without the pins: queue, wait, compare, acknowledge.

The tests behind TEST=bus and TEST=overlap are written in these verbs. BusTest gives them on the
pins, tb.env.on_backend on a backend, for a simulator in which cocotb does not run.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any

from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE, QueueRegisters
from driver.backend.shared_memory import FaultRange
from driver.config import HwConfig
from driver.isa import (
    COMPLETION_BYTES,
    PACKET_BYTES,
    CompletionRecord,
    DeviceState,
    Packet,
    csr,
)
from golden.backend import CmodelBackend
from tb.agents.packet_queue import MOST_READS, Way
from tb.env.comparison import IDLE_REGISTERS, STEADY_REGISTERS, DeviceComparison
from tb.env.memory import BenchMemory
from tb.env.tally import Compared
from tb.env.verdict import Mismatch, expect
from tb.seqs.arena import Arena

RING_ENTRIES = 8
IRQ_ALL = (
    csr.IRQ_ENABLE_COMPLETE_MASK
    | csr.IRQ_ENABLE_EMPTY_MASK
    | csr.IRQ_ENABLE_ERROR_MASK
    | csr.IRQ_ENABLE_COMPLETE1_MASK
    | csr.IRQ_ENABLE_EMPTY1_MASK
)
_WHILE = 20_000
"""Cycles, in which a device that goes on moves something."""
_IDENTITY = (csr.ID, csr.VERSION, csr.CONFIG)
_LOG2_ENTRIES = RING_ENTRIES.bit_length() - 1


class DeviceVerbs:
    """A device, the model of it, and the memories of both."""

    dram_stall = 0
    """Chance out of 256 that a channel of the DRAM holds back for a cycle."""
    second_in_use = False
    """Bring up the second queue as well."""
    patience = 200_000
    """Cycles without an interrupt after which a device hangs: no command takes as long."""
    compares: tuple[Compared, ...] = ("registers",)
    """Of these the scoreboard must have compared something, or the test is no test."""

    config: HwConfig
    rng: random.Random
    memory: BenchMemory
    model: CmodelBackend

    def lay_out(self) -> None:
        """Places of ring, records and operands, from the configuration."""
        base = self.config.memory.base
        self.ring_base = base
        self.records_base = base + 4096
        self.second_ring_base = base + 8192
        size_bytes = RING_ENTRIES * COMPLETION_BYTES
        self.second_records_base = self.records_base + size_bytes
        self.records = range(self.records_base, self.records_base + 2 * size_bytes)
        self.arena = Arena(self.rng, base + (1 << 16), base + (1 << 24))

    # ------------------------------------------------------------------ given by the bench
    @property
    def found(self) -> DeviceComparison:
        """What was compared so far."""
        raise NotImplementedError

    async def read(self, offset: int) -> int:
        """A register; compared with the model."""
        raise NotImplementedError

    async def write(self, offset: int, value: int) -> None:
        """A register, of the device and then of the model, which executes at once."""
        raise NotImplementedError

    async def refused(self, offset: int) -> None:
        """Mismatch unless reads and writes of the offset, where no register is, are refused."""
        raise NotImplementedError

    async def queue(self, packets: list[Packet], way: Way) -> None:
        """Queue packets."""
        raise NotImplementedError

    async def resync(self) -> None:
        """Begin at the device's head again."""
        raise NotImplementedError

    async def irq_within(self, cycles: int) -> bool:
        """Wait until irq is high: whether it is after so many cycles."""
        raise NotImplementedError

    async def irq_after(self, cycles: int) -> int:
        """The pin irq, so many cycles later."""
        raise NotImplementedError

    def beside(self, traffic: Coroutine[Any, Any, None]) -> Awaitable[None]:
        """Let the host use its port at the same time; await what this returns for its end."""
        raise NotImplementedError

    # ------------------------------------------------------------------ for tests
    def place(self) -> None:
        """The arena's new contents into both memories, through the back door."""
        for address, data in self.arena.taken():
            self.memory.write(address, data)
            self.model.write_memory(address, data)

    async def command(self, packets: list[Packet], way: Way) -> None:
        """Queue packets; registers that depend on time are not compared until `settle`."""
        self.found.idle = False
        await self.queue(packets, way)

    def records_of(self, way: Way, first: int, count: int) -> list[CompletionRecord]:
        """Those of the commands of a queue from the one with this number on."""
        base = self.second_records_base if way is Way.SECOND_RING else self.records_base
        places = (base + (first + at) % RING_ENTRIES * COMPLETION_BYTES for at in range(count))
        return [
            CompletionRecord.unpack(self.memory.read(place, COMPLETION_BYTES)) for place in places
        ]

    def refuse(self, faults: Sequence[FaultRange]) -> None:
        """From now on DRAM refuses these, and nothing else."""
        for memory in (self.memory, self.model):
            memory.set_faults(list(faults))

    async def interrupt(self) -> None:
        """Wait until irq is high. Mismatch: the device hangs, or is far too slow."""
        if not await self.irq_within(self.patience):
            how = "too slow, for data still moves" if await self._is_moving() else "hung"
            raise Mismatch(
                f"{how}: no interrupt in {self.patience} cycles, {await self._progress()}"
            )

    async def finish(self) -> None:
        """Wait, by reading alone, until nothing is queued or the queue has stopped. Mismatch: the
        device hangs."""
        for _ in range(MOST_READS):
            if await self.is_idle():
                return
        raise Mismatch(f"hung: busy in {MOST_READS} reads, {await self._progress()}")

    async def settle(self) -> None:
        """Wait until nothing is queued or the queue has stopped; then compare all registers, and
        the completion records. Mismatch: the device hangs."""
        for _ in range(MOST_READS):
            if await self.is_idle():
                break
            state = DeviceState(await self.read(csr.STATUS) & csr.STATUS_STATE_MASK)
            if state is not DeviceState.BUSY:
                for completed in self._completed():
                    done, expected = await self.read(completed), self.model.read_csr(completed)
                    expect(f"commands completed in state {state.name}", done, expected)
                break
            await self.interrupt()
            await self.write(csr.IRQ_STATUS, IRQ_ALL)
        else:
            raise Mismatch(f"hung: busy in {MOST_READS} interrupts, {await self._progress()}")
        await self.compare_registers()
        self.found.compare_records()

    async def compare_registers(self) -> None:
        """All that the model knows of a device that is idle."""
        self.found.idle = True
        for offset in sorted(STEADY_REGISTERS | IDLE_REGISTERS):
            await self.read(offset)

    async def acknowledge(self) -> None:
        """Leave ERROR; what was queued is gone on both sides."""
        await self.write(csr.CTRL, csr.CTRL_ERROR_ACK_MASK)
        await self.resync()

    async def is_idle(self) -> bool:
        """Finished, or stopped by an error, as far as the model has come."""
        for completed in self._completed():
            if await self.read(completed) != self.model.read_csr(completed):
                return False
        return True

    async def _progress(self) -> str:
        """How far the device has come, for a person."""
        counts = [
            f"{await self.read(completed)} of {self.model.read_csr(completed)}"
            for completed in self._completed()
        ]
        state = DeviceState(await self.read(csr.STATUS) & csr.STATUS_STATE_MASK)
        return f"{' and '.join(counts)} commands completed, state {state.name}"

    async def _is_moving(self) -> bool:
        """Whether a beat of data comes or goes within a while."""
        counters = (csr.READ_BEATS_LO, csr.WRITE_BEATS_LO)
        before = [await self.read(counter) for counter in counters]
        await self.irq_after(_WHILE)
        return before != [await self.read(counter) for counter in counters]

    def _completed(self) -> tuple[int, ...]:
        used = (FIRST_QUEUE, SECOND_QUEUE) if self.second_in_use else (FIRST_QUEUE,)
        return tuple(queue.completed for queue in used)

    # ------------------------------------------------------------------ for benches
    async def at_reset(self) -> None:
        """What a test does before anything is written."""

    async def bring_up(self) -> None:
        """Ring, records and interrupts, as a driver sets them, of the device that is expected."""
        for offset in _IDENTITY:
            await self.read(offset)
        await self._bring_up(FIRST_QUEUE, self.ring_base, self.records_base)
        if self.second_in_use:
            await self._bring_up(SECOND_QUEUE, self.second_ring_base, self.second_records_base)
        await self.write(csr.IRQ_ENABLE, IRQ_ALL)

    async def _bring_up(self, queue: QueueRegisters, ring: int, records: int) -> None:
        self.memory.write(ring, bytes(RING_ENTRIES * PACKET_BYTES))
        enabled = _LOG2_ENTRIES << csr.RING_CTRL_LOG2_ENTRIES_LSB | csr.RING_CTRL_ENABLE_MASK
        settings = {
            queue.base: ring & 0xFFFF_FFFF,
            queue.base + 4: ring >> 32,
            queue.control: enabled,
            queue.records: records & 0xFFFF_FFFF,
            queue.records + 4: records >> 32,
            queue.records_control: enabled,
        }
        for offset, value in settings.items():
            await self.write(offset, value)
