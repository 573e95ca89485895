# SPDX-License-Identifier: Apache-2.0
"""Commands whose beats and work follow from their packets, and pairs that have one reason to wait.

The model has no clock. Counters and records are held to what packets, operands and the contract of
docs/isa.md say of them, and to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from driver.backend.queues import QUEUES
from driver.isa import COMPLETION_BYTES, CompletionRecord, DType, Opcode, Packet, csr
from driver.isa.micro import PLAIN_IMMEDIATES
from driver.isa.programs import LINES
from driver.runtime.engine_counters import Engine, command_wait
from tb.agents.packet_queue import Way
from tb.env.base_test import BusTest
from tb.env.comparison import TIMED_REGISTERS
from tb.env.verdict import Mismatch, expect
from tb.seqs.counted import CommandMaker, CountedCommand
from tb.seqs.packets import long_sum
from tb.seqs.streams import stream_flags, stream_packet

_CLEARED = sorted(
    {*TIMED_REGISTERS, csr.COMMANDS_LO, csr.COMMANDS_HI}
    - {csr.CYCLE_LO, csr.CYCLE_HI, csr.IRQ_STATUS}
)
"""What PERF_CTRL clears; the low word of a counter comes before its high word."""
_WAITS = (*csr.ARRAYS["ENGINE_WAIT"], *csr.ARRAYS["COMMAND_WAIT"])
_COUNTER = 1 << 32
_SIDE = 32
"""Of operands on a bus of _BUS_BITS and less. A COPY of them takes longer than the checks of the
command behind it, so that this one waits; on a wider bus it has to be longer."""
_BUS_BITS = 256
_LONG_BEATS = 4096
"""Of an operand of commands that run while others of both queues are fetched and checked, ..."""
_TAKEN = 300
"""... which takes fewer cycles."""
_TERMS = 4000
"""Of a sum that takes longer than such a COPY."""
_SAME_ENGINE = 3
"""Commands of one engine: COPY and FILL run two at a time."""


class CountedCommands(BusTest):
    """Beats and work as packets ask for, and no waits but those that had to be."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        for engine in Engine:
            await self._alone(engine.name, engine, self._make.one(engine))
            await self._same_engine(engine)
        await self._alone("FILL", Engine.COPY, self._make.fill())
        await self._alone("LOAD", Engine.VECTOR, self._make.load())
        await self._without_engine()
        await self._put_aside()
        await self._behind_two()
        for engine, earlier in product(Engine, repeat=2):
            await self._dependent(engine, earlier)
            if Engine.GATHER not in {engine, earlier} and engine is not earlier:
                await self._independent(engine, earlier)

    @property
    def _make(self) -> CommandMaker:
        side = _SIDE * max(1, self.config.bus_bits // _BUS_BITS)
        return CommandMaker(self.arena, self.config, side)

    @property
    def _make_long(self) -> CommandMaker:
        make, side = self._make, self._make.side
        while make.in_beats(4 * side**2) < _LONG_BEATS:
            side += make.side
        return replace(make, side=side)

    async def _alone(self, name: str, engine: Engine, one: CountedCommand) -> None:
        counts, (record,) = await self._counted([one.packet], Way.REGISTERS)
        expect(f"{name}: beats read", record.read_beats, one.read_beats)
        expect(f"{name}: beats written", record.write_beats, one.written_beats)
        expect(f"{name}: active cycles", record.active_cycles, one.active_cycles)
        busy = counts[csr.BUSY_CYCLES_LO]
        expected = dict.fromkeys(counts, 0) | {
            csr.BUSY_CYCLES_LO: max(busy, record.cycles),
            csr.ACTIVE_CYCLES_LO: record.active_cycles,
            csr.OPERAND_STALL_LO: record.operand_stall,
            csr.RESULT_STALL_LO: record.result_stall,
            csr.READ_BEATS_LO: record.read_beats + one.described_beats,
            csr.WRITE_BEATS_LO: record.write_beats + self._make.in_beats(COMPLETION_BYTES),
            csr.COMMANDS_LO: 1,
            csr.ARRAYS["ENGINE_BUSY"][engine]: record.cycles,
        }
        for offset, count in counts.items():
            expect(f"{name} alone: counter {offset:#05x}", count, expected[offset])
        spent = record.active_cycles + record.operand_stall + record.result_stall
        if spent > record.cycles:
            raise Mismatch(f"{name} alone: active or stalled in {spent} of {record.cycles}")

    async def _same_engine(self, engine: Engine) -> None:
        """Nothing starts behind a GATHER that has not ended; else the last waits for the engine."""
        commands = [self._make.one(engine) for _ in range(_SAME_ENGINE)]
        counts, records = await self._counted([one.packet for one in commands])
        for number, (one, record) in enumerate(zip(commands, records, strict=True)):
            what = f"{engine.name} number {number} of {_SAME_ENGINE}: beats"
            beats = record.read_beats, record.write_beats
            expect(what, beats, (one.read_beats, one.written_beats))
        if engine is Engine.GATHER:
            waited = {command_wait(engine, engine): sum(one.operand_wait for one in records)}
        else:
            waited = {csr.ARRAYS["ENGINE_WAIT"][engine]: sum(one.engine_wait for one in records)}
        self._expect_waits(f"{_SAME_ENGINE} of {engine.name}", counts, waited)

    async def _dependent(self, engine: Engine, earlier: Engine) -> None:
        """The second reads what the first writes."""
        make = self._make
        if engine is Engine.GATHER and earlier is not Engine.MATRIX:
            make = replace(make, side=2 * make.side)  # it has three descriptors to read
        what, meeting = f"{engine.name} behind {earlier.name}", make.operand()
        first = make.one(earlier, dst=meeting).packet
        second = make.one(engine, src=meeting).packet
        counts, (before, after) = await self._counted([first, second])
        self._expect_waits(what, counts, {command_wait(engine, earlier): after.operand_wait})
        self._expect_busy(what, counts, (earlier, engine), (before, after))
        expect(f"{what}: number waited for", after.waited_for, before.seq)
        if after.start_cycle < before.end_cycle:
            raise Mismatch(f"{what}: started {before.end_cycle - after.start_cycle} cycles early")

    async def _independent(self, engine: Engine, earlier: Engine) -> None:
        """They run at the same time."""
        what = f"{engine.name} beside {earlier.name}"
        packets = [self._make.one(one).packet for one in (earlier, engine)]
        counts, (before, after) = await self._counted(packets)
        self._expect_waits(what, counts, {})
        self._expect_busy(what, counts, (earlier, engine), (before, after))
        if after.start_cycle >= before.end_cycle:
            raise Mismatch(f"{what}: started only when the other had ended")

    async def _without_engine(self) -> None:
        """A SYNC starts when the command before it has ended, and ends when its word is written;
        a NOP ends when it starts."""
        packets = [
            self._make.one(Engine.COPY).packet,
            Packet(Opcode.SYNC, 0, 0, 0, self._make.operand(), (1,)),
            Packet(Opcode.NOP, 0),
        ]
        _, (before, sync, nop) = await self._counted(packets)
        expect("SYNC behind COPY: number waited for", sync.waited_for, before.seq)
        if not before.end_cycle < sync.start_cycle < sync.end_cycle <= nop.start_cycle:
            raise Mismatch(
                f"COPY ended in cycle {before.end_cycle}, SYNC ran from {sync.start_cycle} to "
                f"{sync.end_cycle}, NOP behind it from {nop.start_cycle}"
            )
        expect("NOP: cycles", nop.cycles, 0)

    async def _put_aside(self) -> None:
        """A COPY waits for a VECTOR of the other queue, which has been put aside and waits for a
        COPY itself."""
        make = self._make_long
        meeting, other = make.operand(), make.operand()
        first, waiting, last = (
            make.one(Engine.COPY, dst=meeting).packet,
            make.one(Engine.VECTOR, src=meeting, dst=other).packet,
            make.one(Engine.COPY, src=other).packet,
        )
        groups = [([first], Way.RING), ([waiting], Way.SECOND_RING), ([last], Way.RING)]
        counts, (before, aside, after) = await self._counted_in_turn(groups)
        waited = {
            command_wait(Engine.VECTOR, Engine.COPY): aside.operand_wait,
            command_wait(Engine.COPY, Engine.VECTOR): after.operand_wait,
        }
        self._expect_waits("COPY behind one put aside", counts, waited)
        for name, record, awaited, queue in (
            ("VECTOR", aside, before, 0),
            ("COPY", after, aside, 1),
        ):
            named = (record.waited_for, record.waited_queue)
            expect(f"{name} behind one of the other queue: waited for", named, (awaited.seq, queue))
        if not after.start_cycle - after.operand_wait < before.end_cycle <= aside.start_cycle:
            raise Mismatch(
                f"COPY ended in cycle {before.end_cycle}, VECTOR behind it started in "
                f"{aside.start_cycle}, COPY behind that in {after.start_cycle} after a wait of "
                f"{after.operand_wait}"
            )

    async def _behind_two(self) -> None:
        """A VECTOR waits for a MATMUL of its queue and for a COPY of the other one, which ends
        earlier: it waits for that of its own queue, also while there are both."""
        copy, matmul = self._make_long.one(Engine.COPY).packet, long_sum(self.arena, _TERMS)
        vector = stream_packet(
            LINES["int_add"],
            stream_flags([DType.INT32] * 2, DType.INT32, descriptors=False),
            [copy.dst, matmul.dst],
            self._make.operand(),
            count=1,
            imms=[0] * PLAIN_IMMEDIATES,
        )
        groups = [([copy], Way.RING), ([matmul, vector], Way.SECOND_RING)]
        counts, (before, own, after) = await self._counted_in_turn(groups)
        waited = {command_wait(Engine.VECTOR, Engine.MATRIX): after.operand_wait}
        self._expect_waits("VECTOR behind two", counts, waited)
        named = (after.waited_for, after.waited_queue)
        expect("VECTOR behind two: waited for", named, (own.seq, 1))
        if not after.start_cycle - after.operand_wait < before.end_cycle < own.end_cycle:
            raise Mismatch("the VECTOR did not wait for two")

    async def _counted(
        self, packets: list[Packet], way: Way = Way.RING
    ) -> tuple[dict[int, int], list[CompletionRecord]]:
        """What packets add to the counters, and their records. Of the ring, the packets are written
        and read on the bus as well."""
        return await self._counted_in_turn([(packets, way)])

    async def _counted_in_turn(
        self, groups: list[tuple[list[Packet], Way]]
    ) -> tuple[dict[int, int], list[CompletionRecord]]:
        """Likewise, of groups that are taken one after the other."""
        await self.write(csr.PERF_CTRL, csr.PERF_CTRL_CLEAR_MASK)
        for offset in _CLEARED:
            expect(f"counter {offset:#05x}, cleared", await self.read(offset), 0)
        self.place()
        queued: list[tuple[Way, int, int]] = []
        following = {queue: await self.read(queue.completed) for queue in QUEUES}
        began = await self.read(csr.CYCLE_LO)
        for number, (packets, way) in enumerate(groups):
            await self.irq_after(_TAKEN if number else 0)
            await self.command(packets, way)
            queued.append((way, following[way.registers], len(packets)))
            following[way.registers] += len(packets)
        await self.settle()
        elapsed = (await self.read(csr.CYCLE_LO) - began) % _COUNTER
        counts = {offset: await self.read(offset) for offset in _CLEARED}
        if counts[csr.BUSY_CYCLES_LO] > elapsed:
            raise Mismatch(f"busy for {counts[csr.BUSY_CYCLES_LO]} of {elapsed} cycles")
        return counts, [record for group in queued for record in self.records_of(*group)]

    @staticmethod
    def _expect_waits(what: str, counts: dict[int, int], waited: dict[int, int]) -> None:
        """These, each longer than nothing, and no others."""
        for offset in _WAITS:
            expect(f"{what}: counter {offset:#05x}", counts[offset], waited.get(offset, 0))
        if not all(waited.values()):
            raise Mismatch(f"{what}: nothing waited")

    @staticmethod
    def _expect_busy(
        what: str,
        counts: dict[int, int],
        engines: Iterable[Engine],
        records: Iterable[CompletionRecord],
    ) -> None:
        """Each engine as long as the records of its commands say."""
        cycles = Counter[Engine]()
        for engine, record in zip(engines, records, strict=True):
            cycles[engine] += record.cycles
        for engine, offset in zip(Engine, csr.ARRAYS["ENGINE_BUSY"], strict=True):
            expect(f"{what}: cycles busy of {engine.name}", counts[offset], cycles[engine])
