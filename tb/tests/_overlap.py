# SPDX-License-Identifier: Apache-2.0
"""The UVM tests behind TEST=overlap."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pyuvm

from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE, QueueRegisters
from driver.backend.shared_memory import BusError, FaultRange
from driver.isa import (
    FLAGS,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from tb.agents.packet_queue import MOST_READS, Way
from tb.env.base_test import BusTest
from tb.env.verbs import IRQ_ALL, RING_ENTRIES
from tb.env.verdict import Mismatch, expect
from tb.seqs.broken import UNKNOWN_OPCODES
from tb.seqs.dependent import SharedOperands, dependent, shared_memory
from tb.seqs.failing import FailingStream, failing_stream
from tb.seqs.faults import FAULTS
from tb.seqs.meeting import meetings
from tb.seqs.mixed import mixed
from tb.seqs.packets import fill_words
from tb.tests._failing import BothFail, RefusedRecords
from tb.tests._resets import (
    LoadsRefusedLate,
    ProgramsForgotten,
    Resets,
    ResetsBothQueues,
    ResetStreams,
    SyncsBesideFailures,
)
from tb.tests._turns import Loads, Turns

_DISTANCES = 60
"""Cycles, more than a FILL of one word takes."""
_LONG_FILL = 16_000
"""Words: more than 1000 cycles on every bus."""
_TAKEN = (300, 400, 500)
"""Cycles behind a doorbell, in which two packets have been fetched and checked."""
_LINE = 64
_CODE = csr.ERROR_CODE_CODE_MASK


class _Streams(BusTest):
    """Streams of commands that share memory; what they leave is what one at a time leaves."""

    compares = ("registers", "memory")
    streams = 6
    commands = 40

    async def stimulus(self) -> None:
        for number in range(self.streams):
            packets = self.packets()
            self.place()
            await self.command(packets, Way.REGISTERS if number % 3 == 2 else Way.RING)
            await self.settle()

    def packets(self) -> list[Packet]:
        """One stream."""
        return dependent(shared_memory(self.arena), self.commands)


@pyuvm.test()
class Dependent(_Streams):
    """On a DRAM that answers evenly."""


@pyuvm.test()
class DependentStalls(_Streams):
    """On a DRAM whose channels hold back at random."""

    streams = 4
    dram_stall = 100


class _Mixed(_Streams):
    """Streams of commands of every kind that share memory and overwrite each other's programs."""

    streams = 4

    def packets(self) -> list[Packet]:
        return mixed(self.arena, self.commands)


@pyuvm.test()
class Mixed(_Mixed):
    """On a DRAM that answers evenly."""


@pyuvm.test()
class MixedStalls(_Mixed):
    """On a DRAM whose channels hold back at random."""

    streams = 3
    dram_stall = 100


@pyuvm.test()
class FailsInTheMiddle(BusTest):
    """A command that fails its checks: all before it has finished, nothing behind it has begun."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        for before in range(6):
            memory = shared_memory(self.arena)
            packets = dependent(memory, before + 6)
            packets.insert(before, Packet(UNKNOWN_OPCODES[0]))
            self.place()
            await self.command(packets[:7], Way.RING)
            await self.settle()
            if not await self.read(csr.ERROR_CODE):
                raise Mismatch("the device accepted an opcode that does not exist")
            await self.acknowledge()


@pyuvm.test()
class ResetsInTheMiddle(ResetStreams):
    """A software reset while commands run and others wait."""


@pyuvm.test()
class ResetsWithBothQueues(ResetsBothQueues):
    """A software reset while commands of both queues wait."""


@pyuvm.test()
class SyncsBesideErrors(SyncsBesideFailures):
    """A SYNC of one queue while a COPY of the other one fails."""


@pyuvm.test()
class RefusedLoads(LoadsRefusedLate):
    """A LOAD that DRAM refuses from some time on."""


@pyuvm.test()
class LoadsAlone(Loads):
    """LOADs of one queue beside FILLs of the other, on a DRAM that answers evenly."""


@pyuvm.test()
class RecordsRefused(RefusedRecords):
    """Records of one queue that DRAM refuses, beside a MATMUL of the other one."""


@pyuvm.test()
class BothQueuesFail(BothFail):
    """A MATMUL of one queue and a COPY of the other one fail at the same time."""


@pyuvm.test()
class QueuesTakeTurns(Turns):
    """Both queues full, on a DRAM that answers evenly."""


class _FailingStreams(Resets):
    """Commands that DRAM refuses in the middle of streams: the first that fails is reported, all
    before it has finished, and nothing that waits for it has begun; then all goes on."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        for number, name in enumerate(self.rng.sample(list(FAULTS), len(FAULTS))):
            stream = failing_stream(self.arena, name, RING_ENTRIES - 1)
            response = self.rng.choice(list(BusError))
            faults = [replace(fault, response=response) for fault in stream.faults]
            await self._fails(f"{name}, {response.name}", stream, faults)
            for spoilt in stream.spoilt:
                self.arena.fill(spoilt.start, len(spoilt))
            if number % 2:
                await self.reset_by_software()
            await self.goes_on()

    async def _fails(self, name: str, stream: FailingStream, faults: list[FaultRange]) -> None:
        self.place()
        before = await self.read(csr.COMPLETED)
        self.refuse(faults)
        await self.command(stream.packets, Way.RING)
        await self.settle()
        self.refuse(())
        if not await self.read(csr.ERROR_CODE):
            raise Mismatch(f"{name}: the device accepted the command, expected an error")
        completed = await self.read(csr.COMPLETED) - before
        expect(f"{name}: commands completed", completed, stream.failing + 1)
        await self.acknowledge()


@pyuvm.test()
class BusErrorInStream(_FailingStreams):
    """On a DRAM that answers evenly."""


@pyuvm.test()
class BusErrorInStreamStalls(_FailingStreams):
    """On a DRAM whose channels hold back at random."""

    dram_stall = 100


class _TwoQueues(BusTest):
    """Streams of both queues at a time. Each works on memory of its own, which the other one gets
    when COMPLETED shows that its commands have finished: software orders what queues share."""

    compares = ("registers", "memory")
    second_in_use = True
    streams = 6
    commands = 20

    async def stimulus(self) -> None:
        first, second, spare = (shared_memory(self.arena) for _ in range(3))
        await self._queue_both(first, second)
        for number in range(self.streams):
            if number % 2:  # the second queue may still be at work
                await self._finished(FIRST_QUEUE)
                first, spare = spare, first
            else:
                await self._finished(SECOND_QUEUE)
                second, spare = spare, second
            await self._queue_both(first, second)
        await self.settle()
        await self._finished(SECOND_QUEUE)

    async def _queue_both(self, first: SharedOperands, second: SharedOperands) -> None:
        """In pieces, as rings have room."""
        streams = {
            Way.RING: dependent(first, self.rng.randint(1, self.commands)),
            Way.SECOND_RING: dependent(second, self.rng.randint(1, self.commands)),
        }
        self.place()
        while any(streams.values()):
            way = self.rng.choice([way for way, packets in streams.items() if packets])
            count = self.rng.randint(1, RING_ENTRIES - 1)
            await self.command(streams[way][:count], way)
            del streams[way][:count]

    async def _finished(self, queue: QueueRegisters) -> None:
        for _ in range(MOST_READS):
            if await self.read(queue.completed) == self.model.read_csr(queue.completed):
                return
            await self.interrupt()
            await self.write(csr.IRQ_STATUS, IRQ_ALL)
        raise Mismatch(f"hung: a queue is busy in {MOST_READS} interrupts")


@pyuvm.test()
class TwoQueues(_TwoQueues):
    """On a DRAM that answers evenly."""


@pyuvm.test()
class TwoQueuesStalls(_TwoQueues):
    """On a DRAM whose channels hold back at random."""

    dram_stall = 100


@pyuvm.test()
class SyncsOfBothQueues(BusTest):
    """A SYNC that waits for a FILL of its queue, and one of the other queue at every distance from
    it: both words may be due in one cycle. Then one that fails after it has waited: what waits for
    it in the other queue does not start."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        for waiting, other in permutations((Way.RING, Way.SECOND_RING)):
            for distance in range(_DISTANCES):
                first, second = self._sync(), self._sync()
                await self.command([fill_words(self.arena, 1), first], waiting)
                await self.irq_after(distance)
                await self.command([second], other)
                await self._causes()
                await self.settle()
            for delay in _TAKEN:
                await self._fails(delay, waiting, other)

    def _sync(self) -> Packet:
        flags = self.rng.choice((0, FLAGS["IRQ"].mask))
        word = self.rng.getrandbits(32)
        return Packet(Opcode.SYNC, flags, dst=self.arena.place(4, 4), params=(word,))

    async def _causes(self) -> None:
        """IRQ_STATUS when all is completed: `complete` of a queue whose SYNC asked for it."""
        await self.finish()
        found, expected = await self.read(csr.IRQ_STATUS), self.model.read_csr(csr.IRQ_STATUS)
        expect("causes in IRQ_STATUS", found, expected)
        await self.write(csr.IRQ_STATUS, IRQ_ALL)

    async def _fails(self, delay: int, waiting: Way, other: Way) -> None:
        line = self.arena.place(_LINE, _LINE)
        self.arena.fill(line, _LINE)
        self.place()
        sync = replace(self._sync(), dst=line)
        dst = self.arena.place(_LINE, _LINE)
        copy = Packet(
            Opcode.COPY, flag_word(DType.INT8, DType.INT8), line, dst=dst, params=(_LINE,)
        )
        self.refuse([FaultRange(line, line + _LINE, on_read=False)])
        await self.command([fill_words(self.arena, _LONG_FILL), sync], waiting)
        await self.irq_after(delay)  # of two queues, what is taken first goes first
        await self.command([copy], other)
        await self.settle()
        self.refuse(())
        expect("error of a SYNC", await self.read(csr.ERROR_CODE) & _CODE, ErrorCode.BUS_WRITE)
        await self.acknowledge()


class _OneDependence(BusTest):
    """Pairs of commands that meet in one operand, or in one line of what describes it, and in
    nothing else: each source, result, scale, descriptor and window of each kind of command."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        for meeting in meetings(self.arena):
            self.place()
            await self.command(meeting.packets, Way.RING)
            await self.settle()  # of a device that has stopped with an error this says so


@pyuvm.test()
class OneDependence(_OneDependence):
    """On a DRAM that answers evenly."""


@pyuvm.test()
class OneDependenceStalls(_OneDependence):
    """On a DRAM whose channels hold back at random."""

    dram_stall = 100


@pyuvm.test()
class ResetForgetsPrograms(ProgramsForgotten):
    """A software reset forgets what was loaded, an error that is acknowledged does not."""
