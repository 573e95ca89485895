# SPDX-License-Identifier: Apache-2.0
"""Of two queues that both have packets, each gets its turn (docs/isa.md)."""

from __future__ import annotations

from itertools import permutations

from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE
from driver.isa import (
    COMPLETION_BYTES,
    DESCRIPTOR_BYTES,
    CompletionRecord,
    Descriptor,
    DType,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from tb.agents.packet_queue import Way
from tb.env.base_test import BusTest
from tb.env.verbs import RING_ENTRIES
from tb.env.verdict import Mismatch

_SHORT = RING_ENTRIES - 3
"""FILLs of one word. Their checks read a descriptor each, so that a queue always has a packet for
its turn, and take longer than the FILLs, so that none waits for its engine."""
_LONG = 6000
"""Cycles of the FILL before them, in which both rings are filled and all packets are fetched."""
_QUEUES = {Way.RING: FIRST_QUEUE, Way.SECOND_RING: SECOND_QUEUE}


class Turns(BusTest):
    """FILLs of both queues wait for a long one, then they start in turn."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        words = _LONG * self.config.bus_bits // 32
        for one, other in permutations(_QUEUES):
            before = {way: await self.read(_QUEUES[way].completed) for way in _QUEUES}
            dst = self.arena.place(4 * words, 4)
            waits = {one: Packet(Opcode.FENCE), other: self._fill(dst, 1)}  # each for the long one
            short = {way: [self._short() for _ in range(_SHORT)] for way in _QUEUES}
            self.place()
            await self.command([self._fill(dst, words), waits[one], *short[one]], one)
            await self.command([waits[other], *short[other]], other)
            filled = await self.read(csr.CYCLE_LO)
            await self.settle()
            numbers = {one: before[one] + 2, other: before[other] + 1}
            starts = [(at, way) for way in _QUEUES for at in self._starts(way, numbers[way])]
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

    def _starts(self, way: Way, first: int) -> list[int]:
        """Cycles in which the commands from the one with this number on started."""
        base = self.records_base if way is Way.RING else self.second_records_base
        places = (base + (first + at) % RING_ENTRIES * COMPLETION_BYTES for at in range(_SHORT))
        records = (self.memory.read(place, COMPLETION_BYTES) for place in places)
        return [CompletionRecord.unpack(record).start_cycle for record in records]

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
