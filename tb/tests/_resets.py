# SPDX-License-Identifier: Apache-2.0
"""Tests with a software reset: in the middle of commands, and behind a LOAD that failed."""

from __future__ import annotations

from itertools import permutations

from driver.backend.queues import SECOND_QUEUE
from driver.errors import InfrastructureError
from driver.isa import (
    COMPLETION_BYTES,
    PACKET_BYTES,
    CompletionRecord,
    DeviceState,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from driver.isa.image import MAX_LINES, PROGRAM_RAM
from driver.isa.programs import LINES, PROGRAMS
from tb.agents.packet_queue import FIRST_QUEUE_WAYS, MOST_READS, Way
from tb.env.base_test import BusTest
from tb.env.verbs import RING_ENTRIES
from tb.env.verdict import Mismatch, expect, expect_bytes
from tb.seqs.broken import UNKNOWN_OPCODES
from tb.seqs.dependent import dependent, shared_memory
from tb.seqs.failing import Independent, independent
from tb.seqs.faults import late_copy
from tb.seqs.loading import line_of, long_load, square_list
from tb.seqs.packets import plain_copy

_RESETS = (0, 50, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400)
"""Cycles behind the doorbell: in some of them, commands have run and others have not."""
_HOST_ACCESSES, _HOST_BYTES = 150, (300, 4000)
"""Writes and reads through the host's port, as many as last for all resets; their lengths."""
_RESULT_BYTES = 64
"""Of the VECTOR of `long_load`."""
_BOTH_RESETS = (0, 100, 200)
"""Likewise, when a COPY of so many beats runs, which starts so many cycles behind its doorbell."""
_COPIED_BEATS, _TAKEN = 4096, 300
_LINE = 64
_FAILING_BEATS = 256
_DISTANCES = range(0, 700, 7)
"""Cycles between a COPY of so many beats and a SYNC, whose write takes twice as long as a step."""
_STEP, _LATEST = 50, 10_000
"""Cycles behind the doorbell from which on a line is refused: between two cases, and at most."""


class Resets(BusTest):
    """What a software reset needs before and behind it."""

    async def reset_by_software(self) -> None:
        """Without waiting for what runs: the device says that it is busy until it has happened."""
        self.found.idle = False
        await self.write(csr.CTRL, csr.CTRL_SOFT_RESET_MASK)
        for _ in range(MOST_READS):
            state = await self._state()
            if not await self.read(csr.CTRL) & csr.CTRL_SOFT_RESET_MASK:
                break
            expect("STATUS.state while a soft reset waits", state, DeviceState.BUSY)
        else:
            raise Mismatch(f"hung: a soft reset waits in {MOST_READS} reads")
        await self.compare_registers()
        await self.bring_up()  # clears the ring in the device's memory
        for base in (self.ring_base, self.second_ring_base)[: 1 + self.second_in_use]:
            self.model.write_memory(base, bytes(RING_ENTRIES * PACKET_BYTES))
        await self.resync()

    async def _state(self) -> int:
        return await self.read(csr.STATUS) & csr.STATUS_STATE_MASK

    async def goes_on(self) -> None:
        """A stream runs."""
        packets = dependent(shared_memory(self.arena), RING_ENTRIES - 2)[: RING_ENTRIES - 1]
        self.place()
        await self.command(packets, Way.RING)
        await self.settle()


class ResetStreams(Resets):
    """A software reset while commands run and others wait: the first ones have finished, with their
    records, and of the others nothing has begun. What the host moves meanwhile arrives."""

    compares = ("registers", "memory", "host reads")

    async def stimulus(self) -> None:
        halves = 0
        traffic = self.beside(self.host_traffic(_HOST_ACCESSES, _HOST_BYTES))
        for delay in _RESETS:
            commands = [independent(self.arena) for _ in range(RING_ENTRIES - 1)]
            finished = await self._reset_behind(commands, delay)
            halves += 0 < finished < len(commands)
            await self.goes_on()
        await traffic
        if not halves:
            raise Mismatch("no reset came while some commands had run and others had not")

    async def _reset_behind(self, commands: list[Independent], delay: int) -> int:
        """How many of the commands had run when the reset came, so many cycles later."""
        self.arena.contents.append((self.records.start, bytes(len(self.records))))
        self.place()
        slots = range(self.records.start, self.records.stop, COMPLETION_BYTES)
        records = [range(slot, slot + COMPLETION_BYTES) for slot in slots]
        places = [*(one.written for one in commands), *records]
        old = [self._bytes_in(place) for place in places]
        await self.command([one.packet for one in commands], Way.RING)
        await self.irq_after(delay)
        await self.reset_by_software()
        found = [self._bytes_in(place) for place in places]
        written = [now != was for now, was in zip(found, old, strict=True)]
        ran = written[: len(commands)]
        expect("commands that ran are the first ones", sorted(ran, reverse=True), ran)
        expect("completion records before a reset", sum(written[len(commands) :]), sum(ran))
        for place, now, some in zip(places, found, written, strict=True):
            if some:
                self.found.compare_bytes("memory", place.start, now)
            self.model.write_memory(place.start, now)
        return sum(ran)

    def _bytes_in(self, place: range) -> bytes:
        return self.memory.read(place.start, len(place))


class ResetsBothQueues(Resets):
    """A software reset while a COPY of one queue runs, and of each queue a FILL waits, one of them
    put aside: the COPY has finished, the FILLs have not begun. On a device on which the COPY is
    always done before the reset comes, the test shows nothing."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        for one, other in permutations((Way.RING, Way.SECOND_RING)):
            in_time = 0
            for delay in _BOTH_RESETS:
                in_time += await self._reset_behind(one, other, delay)
                await self.goes_on()
            if not in_time:
                what = f"no reset came while a COPY of the {one.value} ran and FILLs waited"
                raise InfrastructureError(what)

    async def _reset_behind(self, one: Way, other: Way, delay: int) -> bool:
        """Whether the COPY still ran when the reset came; only then is anything compared."""
        size_bytes = _COPIED_BEATS * self.config.bus_bits // 8
        copy = plain_copy(self.arena, size_bytes)
        self.arena.contents.append((self.records.start, bytes(len(self.records))))
        self.place()
        flags = flag_word(DType.FP32, DType.INT8)
        waits, aside = (
            Packet(Opcode.FILL, flags, dst=place, params=(_LINE, self.rng.getrandbits(8)))
            for place in (copy.dst + size_bytes - _LINE, copy.dst)
        )
        await self.command([copy], one)
        await self.irq_after(_TAKEN)
        await self.command([aside], other)
        await self.command([waits], one)
        await self.irq_after(delay)
        in_time = not self._recorded()
        await self.reset_by_software()
        found = self.memory.read(copy.dst, size_bytes)
        if in_time:
            copied = self.memory.read(copy.src1, size_bytes)
            expect_bytes("copied before a reset", copy.dst, found, copied)
            expect("records before a reset", self._recorded(), 1)
        self.model.write_memory(copy.dst, found)
        records = self.memory.read(self.records.start, len(self.records))
        self.model.write_memory(self.records.start, records)
        return in_time

    def _recorded(self) -> int:
        """How many completion records there are."""
        slots = range(self.records.start, self.records.stop, COMPLETION_BYTES)
        return sum(any(self.memory.read(slot, COMPLETION_BYTES)) for slot in slots)


class SyncsBesideFailures(Resets):
    """A SYNC at every distance from the end of a COPY of the other queue that fails: when the error
    is reported, the SYNC has been completed with its word, or nothing comes of it."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        for recorded in (True, False):
            written = [await self._written_beside(wait, recorded) for wait in _DISTANCES]
            expect("a SYNC long before an error is completed", written[0], True)
            expect("a SYNC behind an error is completed", written[-1], False)

    async def _written_beside(self, wait: int, recorded: bool) -> bool:
        """Whether the SYNC was completed, so many cycles behind the COPY, which has a record or
        not: writing one takes time that would hide an early report."""
        if not recorded:
            await self.write(SECOND_QUEUE.records_control, 0)
        copy = late_copy(self.arena, _FAILING_BEATS * self.config.bus_bits // 8)
        word = self.arena.place(4, 4)
        sync = Packet(Opcode.SYNC, dst=word, params=(self.rng.getrandbits(32) | 1,))
        self.arena.contents.append((word, bytes(4)))
        self.place()
        self.memory.set_faults([copy.fault])  # the model completes both
        await self.command([copy.packet], Way.SECOND_RING)
        await self.irq_after(wait)
        await self.command([sync], Way.REGISTERS)
        for _ in range(MOST_READS):
            if await self._state() == DeviceState.ERROR:
                break
        else:
            raise Mismatch(f"hung: no error in {MOST_READS} reads")
        code = await self.read(csr.ERROR_CODE) & csr.ERROR_CODE_CODE_MASK
        expect("the error of a COPY", code, ErrorCode.BUS_READ)
        completed = await self.read(csr.COMPLETED)
        for when in ("with the error", "long after it"):
            found = int.from_bytes(self.memory.read(word, 4), "little")
            expect(f"the word of a SYNC {when}", found, sync.params[0] * completed)
            expect(f"commands completed {when}", await self.read(csr.COMPLETED), completed)
            await self.irq_after(_TAKEN)
        self.refuse(())
        for place in (copy.spoilt, range(word, word + 4), self.records):
            self.model.write_memory(place.start, self.memory.read(place.start, len(place)))
        await self.reset_by_software()
        return bool(completed)


class ProgramsForgotten(Resets):
    """A software reset forgets what was loaded, an error that is acknowledged does not."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        for way in FIRST_QUEUE_WAYS:
            load, use = long_load(self.arena, PROGRAM_RAM)
            self.place()
            await self.command([load, use], way)
            await self.settle()
            await self._answers(Packet(UNKNOWN_OPCODES[0], 0), ErrorCode.BAD_OPCODE)
            await self._runs(use, ErrorCode.NONE)
            await self.reset_by_software()
            await self._runs(use, ErrorCode.NOT_LOADED)
            await self.goes_on()

    async def _runs(self, use: Packet, code: ErrorCode) -> None:
        """The result is there, or with an error what was there before."""
        self.arena.fill(use.dst, _RESULT_BYTES)
        self.place()
        await self._answers(use, code)
        found = self.memory.read(use.dst, _RESULT_BYTES)
        self.found.compare_bytes("memory", use.dst, found)

    async def _answers(self, packet: Packet, code: ErrorCode) -> None:
        """This code, which is acknowledged."""
        await self.command([packet], Way.RING)
        await self.settle()
        found = await self.read(csr.ERROR_CODE) & csr.ERROR_CODE_CODE_MASK
        expect(f"the answer to opcode {packet.opcode}", found, code)
        if code:
            await self.acknowledge()


class LoadsRefusedLate(Resets):
    """A LOAD whose last line DRAM refuses from some time on: in its first reading the program that
    was there remains, in its second there is none."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        found = set()
        for delay in range(0, _LATEST, _STEP):
            code = await self._refused_after(delay)
            if code is None:  # the LOAD was faster
                break
            found.add(code)
        expect("answers of the program that was there", found, {0, ErrorCode.NOT_LOADED})

    async def _refused_after(self, delay: int) -> int | None:
        """What the program's VECTOR gives then."""
        old, use = long_load(self.arena, PROGRAM_RAM)
        new, _ = long_load(self.arena, PROGRAM_RAM)
        self.place()
        await self.command([old, use], Way.RING)
        await self.settle()
        fault = line_of(new.src1, MAX_LINES - 1)
        self.model.set_faults([fault])
        await self.command([new], Way.RING)
        await self.irq_after(delay)
        self.memory.set_faults([fault])
        refused = await self._error(new)
        self.refuse(())
        code = None
        if refused:
            expect("a LOAD that DRAM refuses", refused, ErrorCode.BUS_READ)
            await self.acknowledge()
            code = await self._answer(use)
        self.arena.contents.append((self.records.start, bytes(len(self.records))))
        self.place()
        await self.reset_by_software()
        return code

    async def _answer(self, use: Packet) -> int:
        place = range(use.dst, use.dst + 4 * use.params[1])
        self.arena.fill(place.start, len(place))
        # The engine keeps the program that it ran last: let it fetch that of `use` again.
        other = square_list(self.arena, LINES["mul"], PROGRAMS["mul"])
        self.place()
        before = self.memory.read(place.start, len(place))
        await self.command([other, use], Way.RING)
        code = await self._error(use)
        after = self.memory.read(place.start, len(place))
        if code:
            expect("a program that is gone", code, ErrorCode.NOT_LOADED)
            expect_bytes("the result of a program that is gone", place.start, after, before)
            self.model.write_memory(place.start, after)
        else:
            self.found.compare_bytes("memory", place.start, after)
        return code

    async def _error(self, packet: Packet) -> int:
        """The code of the last command, in its record too; the model's may be another."""
        await self.finish()
        code = await self.read(csr.ERROR_CODE) & csr.ERROR_CODE_CODE_MASK
        slot = (await self.read(csr.COMPLETED) - 1) % RING_ENTRIES
        address = self.records.start + slot * COMPLETION_BYTES
        record = CompletionRecord.unpack(self.memory.read(address, COMPLETION_BYTES))
        expect(
            "opcode and status of a record", (record.opcode, record.status), (packet.opcode, code)
        )
        return code
