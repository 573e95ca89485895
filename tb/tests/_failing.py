# SPDX-License-Identifier: Apache-2.0
"""Commands that fail, and what comes after them: the model says which error each one gives."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

from driver.backend.shared_memory import BusError, FaultRange
from driver.isa import (
    COMPLETION_BYTES,
    FLAGS,
    PACKET_BYTES,
    DType,
    Opcode,
    Packet,
    WindowDescriptor,
    csr,
    flag_word,
)
from driver.isa.image import MAX_LINES, PROGRAM_RAM, PROGRAM_RAM_LINES
from tb.agents.packet_queue import FIRST_QUEUE_WAYS, Way
from tb.env.base_test import BusTest
from tb.env.verbs import RING_ENTRIES
from tb.env.verdict import Mismatch
from tb.seqs.broken import BREAKS, UNKNOWN_OPCODES
from tb.seqs.faults import FAULTS, Faulty, late_copy, late_sum, longest_lists
from tb.seqs.images import EXAMPLE, IMAGE_BREAKS
from tb.seqs.loading import (
    boot_aliases,
    broken_load,
    example_load,
    load_longest_list,
    programs_apart,
    reload,
    square_list,
    too_many_sources,
)
from tb.seqs.packets import fill, long_sum, matmul
from tb.seqs.spoiled import spoiled

_LONGEST = 20
"""Largest size of a random operand's dimension."""
_LINE_BITS = 32
"""Of the number that a VECTOR has of its program's first line."""
_LATE_TERMS = (3000, 6000)
_LATE_BYTES = (1 << 14, 1 << 16)
"""Of a sum and a COPY that fail when they end: either may be the first."""
_TERMS = 6000
"""Of a sum that runs while a packet of the other queue is fetched, and its record fails."""


class Failing(BusTest):
    """Commands that fail, and what comes after them."""

    compares = ("registers", "memory")

    async def expect_error(self, name: str, packets: list[Packet], way: Way) -> None:
        """The model's code in state ERROR, with nothing executed after it; then acknowledge."""
        await self.command(packets, way)
        await self.settle()
        if not await self.read(csr.ERROR_CODE):
            raise Mismatch(f"{name}: the device accepted the command, expected an error")
        await self.acknowledge()

    async def expect_success(self, way: Way) -> None:
        """All goes on."""
        recovered = matmul(self.arena, _LONGEST)
        self.place()
        await self.command([recovered], way)
        await self.settle()


class BrokenPackets(Failing):
    """Every way to break a packet stops the queue with the model's code; then all goes on."""

    second_in_use = True

    async def stimulus(self) -> None:
        for name, broken in BREAKS.items():
            for way in Way:
                good = matmul(self.arena, _LONGEST)
                bad = broken(good, self.arena)
                after = matmul(self.arena, _LONGEST)
                self.place()
                await self.expect_error(name, [good, bad, after], way)
                await self.expect_success(way)
        last = Packet(
            Opcode.FILL,
            flag_word(DType.FP32, DType.INT8),
            dst=self.config.memory.limit - _LONGEST,
            params=(_LONGEST, self.rng.getrandbits(8)),
        )
        await self.command([last], Way.RING)
        await self.settle()
        edge = self.config.memory.limit - 64
        window = WindowDescriptor(self.config.memory.base, DType.FP32, (1,) * 7, (1,) * 7).pack()
        self.memory.write(edge, window[:64])
        self.model.write_memory(edge, window[:64])
        flags = flag_word(DType.FP32, DType.FP32, "SRC1_DESC")
        half = Packet(Opcode.MATMUL, flags, edge, last.dst & ~63, last.dst & ~63, (1, 1, 1, 1))
        await self.expect_error("half of a window in memory", [half], Way.RING)
        await self.expect_error("one byte too far", [replace(last, dst=last.dst + 1)], Way.RING)
        await self._disabled_ring()

    async def _disabled_ring(self) -> None:
        """What is queued in a ring that is disabled does not run, until it is enabled; an error
        of the other queue drops it."""
        control = await self.read(csr.RING1_CTRL)
        for drops in (False, True):
            await self.write(csr.RING1_CTRL, control & ~csr.RING1_CTRL_ENABLE_MASK)
            waiting = [matmul(self.arena, _LONGEST) for _ in range(3)]
            self.place()
            await self.command(waiting, Way.SECOND_RING)
            await self.settle()
            if drops:
                bad = Packet(Opcode.NOP, FLAGS["SRC3_DESC"].mask)
                await self.expect_error("beside a disabled ring", [bad], Way.RING)
            self.found.idle = False
            await self.write(csr.RING1_CTRL, control)
            await self.settle()
        await self.expect_success(Way.SECOND_RING)


class SpoiledPackets(Failing):
    """Packets with several things wrong at a time give the error that comes first in the order of
    checks."""

    second_in_use = True
    packets = 300

    async def stimulus(self) -> None:
        for _ in range(self.packets):
            bad = spoiled(self.arena)
            way = self.rng.choice(list(Way))
            after = fill(self.arena, _LONGEST)
            self.place()
            self.refuse(bad.faults)
            await self.expect_error(str(bad), [bad.packet, after], way)
            self.refuse(())


class BrokenImages(Failing):
    """No malformed image is loaded, and none harms the program that was there before."""

    async def stimulus(self) -> None:
        good = example_load(self.arena)
        (line, _) = good.params
        use = square_list(self.arena, line, EXAMPLE)
        self.place()
        await self.command([good, use], Way.RING)
        await self.settle()
        for name, broken in IMAGE_BREAKS.items():
            bad = broken_load(self.arena, broken)
            after = matmul(self.arena, _LONGEST)
            self.place()
            await self.expect_error(name, [bad, after], self.rng.choice(FIRST_QUEUE_WAYS))
            again = square_list(self.arena, line, EXAMPLE)  # a destination that nothing wrote yet
            self.place()
            await self.command([again], Way.RING)
            await self.settle()


class Reloads(Failing):
    """A program in the place of another is the one that runs, and the other is loaded no more; one
    of more sources than a packet names needs a list."""

    async def stimulus(self) -> None:
        first = PROGRAM_RAM + PROGRAM_RAM_LINES // 2
        for least in (2, 2, 2, 2, 2, MAX_LINES):  # nothing begins inside a single line
            old, old_use = reload(self.arena, first)
            new, new_use = reload(self.arena, first, least=least)
            inside, _ = reload(self.arena, first + new.params[1] - 1)
            self.place()
            await self.command([old, old_use, new, new_use], self.rng.choice(FIRST_QUEUE_WAYS))
            await self.settle()
            await self.command([inside], Way.RING)
            await self.settle()
            await self.expect_error("a program that is overwritten", [new_use], Way.RING)
        packets = programs_apart(self.arena)
        self.place()
        await self.command(packets, Way.RING)
        await self.settle()
        line, *others = packets[-1].params
        for beyond in (line - PROGRAM_RAM_LINES, line + PROGRAM_RAM_LINES):
            alias = replace(packets[-1], params=(beyond, *others))
            await self.expect_error(f"line {beyond}, of no program", [alias], Way.RING)
        await self._boot_programs()
        load, use = too_many_sources(self.arena)
        self.place()
        await self.command([load], Way.RING)
        await self.settle()
        await self.expect_error("a program of four sources without a list", [use], Way.RING)

    async def _boot_programs(self) -> None:
        """None is taken for one that was loaded, nor a line that does not exist for one of them."""
        packets = boot_aliases(self.arena)
        self.place()
        await self.command(packets, Way.RING)
        await self.settle()
        boot = packets[1]
        line, *others = boot.params
        for bit in range((PROGRAM_RAM + PROGRAM_RAM_LINES).bit_length(), _LINE_BITS):
            alias = replace(boot, params=(line + (1 << bit), *others))
            await self.expect_error(f"line {line} with bit {bit}", [alias], Way.RING)


class RefusedAccesses(Failing):
    """Every access of a command that DRAM refuses is reported; then all goes on."""

    async def stimulus(self) -> None:
        for name, make in FAULTS.items():
            for way, response in product(FIRST_QUEUE_WAYS, BusError):
                faulty = make(self.arena)
                fault = replace(faulty.fault, response=response)
                await self._refused(f"{name}, {response.name}", replace(faulty, fault=fault), way)
        ring = range(self.ring_base, self.ring_base + RING_ENTRIES * PACKET_BYTES)
        records = range(self.records_base, self.records_base + RING_ENTRIES * COMPLETION_BYTES)
        fence, unknown = Packet(Opcode.FENCE, FLAGS["IRQ"].mask), Packet(UNKNOWN_OPCODES[0])
        for name, packet, addresses, write in (
            ("packet", fence, ring, False),
            ("record", fence, records, True),
            ("record of a command that has failed", unknown, records, True),
        ):
            for response in BusError:
                fault = FaultRange(addresses.start, addresses.stop, not write, write, response)
                faulty = Faulty(packet, fault, range(0))
                await self._refused(f"{name}, {response.name}", faulty, Way.RING)
        await self._without_records()
        load = load_longest_list(self.arena)
        self.place()
        await self.command([load], Way.RING)
        await self.settle()
        for number, faulty in enumerate(longest_lists(self.arena)):
            await self._refused(f"operand {number} of the longest list", faulty, Way.RING)

    async def _without_records(self) -> None:
        """A refused write is an error of its command alone, also where no record's answer comes
        before that of the next one."""
        enabled = await self.read(csr.CPL_CTRL)
        await self.write(csr.CPL_CTRL, enabled & ~csr.CPL_CTRL_ENABLE_MASK)
        for name in ("destination of a copy", "scattered"):
            faulty = FAULTS[name](self.arena)
            await self._fails(f"{name}, without records", faulty, Way.RING)
            self.place()
            await self.command([faulty.packet], Way.RING)
            await self.settle()
        await self.write(csr.CPL_CTRL, enabled)

    async def _refused(self, name: str, faulty: Faulty, way: Way) -> None:
        await self._fails(name, faulty, way)
        await self.expect_success(way)

    async def _fails(self, name: str, faulty: Faulty, way: Way) -> None:
        self.place()
        self.refuse([faulty.fault])
        await self.expect_error(name, [faulty.packet], way)
        self.refuse(())
        if faulty.spoilt:
            self.arena.fill(faulty.spoilt.start, len(faulty.spoilt))


class RefusedRecords(Failing):
    """Records of one queue that DRAM refuses while a command of the other one runs: that one
    completes, with its record, and the error is the first one's."""

    second_in_use = True

    async def stimulus(self) -> None:
        bases = {Way.RING: self.records_base, Way.SECOND_RING: self.second_records_base}
        for way, base in bases.items():
            (other,) = bases.keys() - {way}
            for response in BusError:
                end = base + RING_ENTRIES * COMPLETION_BYTES
                running = long_sum(self.arena, _TERMS)
                self.place()
                self.refuse([FaultRange(base, end, False, True, response)])
                await self.command([running], other)
                await self.expect_error(f"record, {response.name}", [Packet(Opcode.NOP)], way)
                self.refuse(())
                await self.expect_success(way)
                await self.expect_success(other)


class BothFail(Failing):
    """A command of each queue that fails late, both at work at the same time: the first queue's is
    reported, whichever of them ends first, and the other queue's is not completed."""

    second_in_use = True

    async def stimulus(self) -> None:
        for terms, size_bytes in product(_LATE_TERMS, _LATE_BYTES):
            both = [late_sum(self.arena, terms), late_copy(self.arena, size_bytes)]
            for first, second in permutations(both):
                what = f"{Opcode(first.packet.opcode).name} of the first queue"
                self.place()
                self.refuse([first.fault, second.fault])
                await self.command([first.packet], Way.RING)
                await self.expect_error(what, [second.packet], Way.SECOND_RING)
                self.refuse(())
                for one in both:
                    self.arena.fill(one.spoilt.start, len(one.spoilt))
            await self.expect_success(Way.RING)
            await self.expect_success(Way.SECOND_RING)
