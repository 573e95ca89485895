# SPDX-License-Identifier: Apache-2.0
"""Of two queues that both have packets, each gets its turn, and a LOAD runs alone (docs/isa.md)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

from driver.isa import (
    DESCRIPTOR_BYTES,
    CompletionRecord,
    Descriptor,
    DType,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from driver.isa.image import PROGRAM_RAM
from tb.agents.packet_queue import Way
from tb.env.base_test import BusTest
from tb.env.verbs import RING_ENTRIES
from tb.env.verdict import Mismatch
from tb.seqs.loading import long_load
from tb.seqs.packets import fill_words

_SHORT = RING_ENTRIES - 3
"""FILLs of one word. Their checks read a descriptor each, so that a queue always has a packet for
its turn, and take longer than the FILLs, so that none waits for its engine."""
_LONG = 6000
"""Cycles of the FILL before them, in which both rings are filled and all packets are fetched."""
_BESIDE = RING_ENTRIES - 1
"""FILLs of the queue beside one that loads."""
_WORDS = (1, 400, 3000)
_TAKEN = 300
"""Cycles behind a doorbell, in which two packets have been fetched and checked."""
_RUNS = 4000
"""Cycles of a FILL that runs when two more doorbells have been taken: each packet is stored behind
a part of its data."""
_WORD_BITS = 32
_QUEUES = (Way.RING, Way.SECOND_RING)


class _BothQueues(BusTest):
    """Commands of both queues, in the order that their records tell."""

    second_in_use = True

    def fill_cycles(self, cycles: int) -> Packet:
        """A FILL that takes so many, and a few more."""
        return fill_words(self.arena, cycles * self.config.bus_bits // _WORD_BITS)

    async def completed(self) -> dict[Way, int]:
        """Commands of each queue that have ended so far."""
        return {way: await self.read(way.registers.completed) for way in _QUEUES}


class Loads(_BothQueues):
    """A LOAD starts when all that was taken before it has ended, in both queues; nothing of either
    is taken until it has ended. Programs and results would be right without."""

    compares = ("registers", "memory")
    rounds = 6

    async def stimulus(self) -> None:
        for _ in range(self.rounds):
            for one, other in permutations(_QUEUES):
                before = await self.completed()
                loads = [long_load(self.arena, PROGRAM_RAM)[0] for _ in range(2)]
                long, *beside = (fill_words(self.arena, count) for count in self._lengths())
                packets = {
                    one: [loads[0], beside.pop(), loads[1]],
                    other: [long, *beside],
                }
                self.place()
                for way in self.rng.sample(list(packets), 2):
                    await self.command(packets[way], way)
                await self.settle()
                self._alone(
                    record
                    for way, queued in packets.items()
                    for record in self.records_of(way, before[way], len(queued))
                )
        for one, other in permutations(_QUEUES):
            await self._behind_a_sync(one, other)
            await self._before_fills(one, other)

    async def _behind_a_sync(self, one: Way, other: Way) -> None:
        """A LOAD waits for what was put aside when it was taken, and is not in the table yet."""
        before = await self.completed()
        long, value = self.fill_cycles(_RUNS), self.rng.getrandbits(32)
        sync = Packet(Opcode.SYNC, dst=self.arena.place(4, 4), params=(value,))
        load, _ = long_load(self.arena, PROGRAM_RAM)
        self.place()
        await self.command([long, sync], other)
        await self.irq_after(_TAKEN)
        await self.command([load], one)
        await self.settle()
        earlier = self.records_of(other, before[other], 2)
        self._alone([*earlier, *self.records_of(one, before[one], 1)])

    async def _before_fills(self, one: Way, other: Way) -> None:
        """A LOAD that waits lets nothing be taken of the other queue."""
        before = await self.completed()
        long = self.fill_cycles(_RUNS)
        later = [fill_words(self.arena, 1) for _ in range(2)]
        load, _ = long_load(self.arena, PROGRAM_RAM)
        self.place()
        for packets, way in (([long], other), ([load], one), (later, other)):
            await self.command(packets, way)
            await self.irq_after(_TAKEN)
        await self.settle()
        (loaded,) = self.records_of(one, before[one], 1)
        first, *_ = self.records_of(other, before[other] + 1, 1)
        if first.start_cycle < loaded.end_cycle:
            raise Mismatch(
                f"a LOAD was taken before a FILL that starts in cycle {first.start_cycle}, and "
                f"runs from {loaded.start_cycle} to {loaded.end_cycle}"
            )

    def _lengths(self) -> list[int]:
        """Of FILLs, in words: of one that runs when a LOAD's turn comes, and of others."""
        return [_WORDS[-1], *self.rng.choices(_WORDS, k=_BESIDE)]

    @staticmethod
    def _alone(records: Iterable[CompletionRecord]) -> None:
        """Mismatch when a command ran beside a LOAD."""
        ran = list(records)
        for load in ran:
            for other in ran if load.opcode == Opcode.LOAD else ():
                apart = other.end_cycle <= load.start_cycle or load.end_cycle <= other.start_cycle
                if other is not load and not apart:
                    raise Mismatch(
                        f"a LOAD runs from cycle {load.start_cycle} to {load.end_cycle}, beside it "
                        f"opcode {other.opcode} from {other.start_cycle} to {other.end_cycle}"
                    )


class Turns(_BothQueues):
    """FILLs of both queues wait for a long one, then they start in turn."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        words = _LONG * self.config.bus_bits // _WORD_BITS
        for one, other in permutations(_QUEUES):
            before = await self.completed()
            dst = self.arena.place(4 * words, 4)
            waits = {one: Packet(Opcode.FENCE), other: self._fill(dst, 1)}  # each for the long one
            short = {way: [self._short() for _ in range(_SHORT)] for way in _QUEUES}
            self.place()
            await self.command([self._fill(dst, words), waits[one], *short[one]], one)
            await self.command([waits[other], *short[other]], other)
            filled = await self.read(csr.CYCLE_LO)
            await self.settle()
            numbers = {one: before[one] + 2, other: before[other] + 1}
            starts = [
                (record.start_cycle, way)
                for way in _QUEUES
                for record in self.records_of(way, numbers[way], _SHORT)
            ]
            if min(at for at, _ in starts) < filled:
                raise Mismatch(f"a FILL of {words} words took less than {_LONG} cycles")
            self._in_turn(starts)

    def _fill(self, dst: int, words: int, *flags: str) -> Packet:
        word = flag_word(DType.FP32, DType.INT32, *flags)
        return Packet(Opcode.FILL, word, dst=dst, params=(words, self.rng.getrandbits(32)))

    def _short(self) -> Packet:
        at, base = self.arena.place(DESCRIPTOR_BYTES, DESCRIPTOR_BYTES), self.arena.place(4, 4)
        self.arena.contents.append((at, Descriptor(base, DType.INT32, (1,), (1,)).pack()))
        return self._fill(at, 0, "DST_DESC")

    @staticmethod
    def _in_turn(starts: list[tuple[int, Way]]) -> None:
        """Mismatch when three that start one after the other are of one queue, as long as the other
        one has some."""
        order = [way for _, way in sorted(starts, key=lambda start: start[0])]
        both = min(len(order) - order[::-1].index(way) for way in _QUEUES)
        for at in range(2, both):
            if len(set(order[at - 2 : at + 1])) == 1:
                said = " ".join(way.name for way in order)
                raise Mismatch(f"three commands of one queue while the other waited: {said}")
