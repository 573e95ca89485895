# SPDX-License-Identifier: Apache-2.0
"""The UVM tests behind TEST=bus."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyuvm

from driver.backend.shared_memory import BusError, FaultRange
from driver.isa import (
    COMPLETION_BYTES,
    DEVICE_ID,
    FLAGS,
    ISA_VERSION,
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
from tb.env.comparison import TIMED_REGISTERS
from tb.env.verbs import IRQ_ALL, RING_ENTRIES
from tb.env.verdict import Mismatch, expect, expect_bytes
from tb.seqs.broken import BREAKS
from tb.seqs.faults import FAULTS, Faulty
from tb.seqs.images import EXAMPLE, IMAGE_BREAKS
from tb.seqs.int4 import negative_zeros, scale_groups
from tb.seqs.loading import (
    broken_load,
    example_load,
    programs_apart,
    reload,
    square_list,
    table_reads,
    unused_immediates,
)
from tb.seqs.packets import legal, long_copy, matmul, offset_copies, repeating_copies
from tb.seqs.streams import strided_vectors
from tb.tests._counted import CountedCommands

_LIMIT = {"timeout_time": 2, "timeout_unit": "ms"}
"""Of simulated time: a device that hangs ends as a failure."""
_LONG_LIMIT = {"timeout_time": 6, "timeout_unit": "ms"}
"""Of the longest test, four times what it needs."""
_OKAY, _DECERR = 0, 3
_FAR_STRIDE = 252
"""Bytes between the words behind the last register that are tried."""
_LONGEST = 20
"""Largest size of a random operand's dimension."""
_UNLIKELY = (strided_vectors, table_reads, unused_immediates, scale_groups, negative_zeros)
"""Packets with what random ones seldom have."""


@pyuvm.test(**_LIMIT)
class Registers(BusTest):
    """Reset values, what can be written, and what no register answers."""

    async def at_reset(self) -> None:
        self.found.idle = True
        for offset in sorted(csr.REGISTERS):
            await self.read(offset)
        for offset in sorted(TIMED_REGISTERS - {csr.CYCLE_LO, csr.CYCLE_HI}):
            expect(f"register {offset:#05x} at reset", await self.read(offset), 0)

    async def stimulus(self) -> None:
        expect("register ID", await self.read(csr.ID), DEVICE_ID)
        expect("register VERSION", await self.read(csr.VERSION), ISA_VERSION)
        array = await self.read(csr.CONFIG) & csr.CONFIG_ARRAY_SIZE_MASK
        expect("array size in register CONFIG", array, self.config.array_size)
        for offset in (csr.RING_BASE_LO, csr.RING_BASE_HI, csr.CPL_BASE_LO, csr.CPL_BASE_HI):
            kept = await self.read(offset)
            for value in (0xFFFF_FFFF, 0, self.rng.getrandbits(32), kept):
                await self.write(offset, value)
                await self.read(offset)
        words = csr.ARRAYS["CMD_WORD"]
        for offset in words:
            await self.write(offset, self.rng.getrandbits(32))
        for offset in words:
            await self.read(offset)
        for offset in _without_a_register(self.config.registers.size_bytes):
            await self.refused(offset)


def _without_a_register(size_bytes: int) -> list[int]:
    """Every word between registers, and some of those behind the last."""
    free = (at for at in range(0, size_bytes, 4) if at not in csr.REGISTERS)
    return [at for at in free if at < max(csr.REGISTERS) or at % _FAR_STRIDE == 0]


@pyuvm.test(**_LIMIT)
class Interrupts(BusTest):
    """Causes of both queues as the model raises them, beside those that are not cleared yet; irq as
    the enable bits say."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        plain, flagged = Packet(Opcode.NOP), Packet(Opcode.NOP, FLAGS["IRQ"].mask)
        broken = Packet(Opcode.NOP, flagged.flags | 1 << 11)
        alone = [1 << cause for cause in range(IRQ_ALL.bit_length())]
        for enabled in (0, *alone, *(IRQ_ALL & ~cause for cause in alone), IRQ_ALL):
            await self.write(csr.IRQ_ENABLE, enabled)
            commands = list(product((plain, flagged, broken), Way))
            self.rng.shuffle(commands)
            for packet, way in commands:
                await self.command([packet], way)
                while not await self.is_idle():
                    pass
                some = self.rng.sample(alone, self.rng.randint(0, len(alone)))
                await self._compare_causes(enabled, [0, *some])
                if packet is broken:
                    for offset in (csr.ERROR_CODE, csr.ERROR_SEQ):
                        expected = self.model.read_csr(offset)
                        expect(f"register {offset:#05x}", await self.read(offset), expected)
                    await self.acknowledge()

    async def _compare_causes(self, enabled: int, cleared: list[int]) -> None:
        causes = await self.read(csr.IRQ_STATUS)
        expect("causes in IRQ_STATUS", causes, self.model.read_csr(csr.IRQ_STATUS))
        for cause in cleared:
            await self.write(csr.IRQ_STATUS, cause)
            causes &= ~cause
            expect(f"IRQ_STATUS with {cause:#x} cleared", await self.read(csr.IRQ_STATUS), causes)
            which = f"pin irq with causes {causes:#x}, of which {enabled:#x} are enabled"
            expect(which, await self.irq_after(2), int(bool(causes & enabled)))


@pyuvm.test(**_LIMIT)
class CommandCounters(CountedCommands):
    """What commands of each engine add to the counters, and have in their records."""


@pyuvm.test(**_LIMIT)
class FrontDoor(BusTest):
    """What goes through s_axi is what the back door sees, at any alignment, both ways."""

    compares = ("registers", "host reads")

    async def stimulus(self) -> None:
        base = self.arena.place(1 << 15, 4096)
        for size in (1, 2, 3, 31, 32, 33, 64, 255, 4096, 5000):
            address = base + self.rng.randrange(1 << 14)
            data = self.rng.randbytes(size)
            expect(
                f"response to a write of {size} bytes at {address:#x}",
                await self.host_write(address, data),
                _OKAY,
            )
            expect_bytes("written through s_axi", address, self.memory.read(address, size), data)
            behind = self.rng.randbytes(size)
            self.memory.write(address, behind)
            self.model.write_memory(address, behind)
            found, response = await self.host_read(address, size)
            expect(f"response to a read of {size} bytes at {address:#x}", response, _OKAY)
            expect_bytes("read through s_axi", address, found, behind)
        beyond = self.config.memory.limit
        where = f"beyond the memory, at {beyond:#x}"
        expect(f"response to a write {where}", await self.host_write(beyond, bytes(64)), _DECERR)
        expect(f"response to a read {where}", (await self.host_read(beyond, 64))[1], _DECERR)


class _Random(BusTest):
    """Random commands in random groups by both ways, host traffic beside them."""

    compares = ("registers", "memory", "host reads")
    commands = 60

    async def stimulus(self) -> None:
        directed = [long_copy(self.arena), *offset_copies(self.arena, self.config.bus_bits // 8)]
        directed += repeating_copies(self.arena)
        self.place()
        await self.command(directed, Way.RING)
        traffic = self.beside(self._host_traffic())
        left = self.commands
        while left:
            group = [legal(self.arena, _LONGEST) for _ in range(self.rng.randint(1, min(5, left)))]
            self.place()
            await self.command(group, self.rng.choice((Way.RING, Way.RING, Way.REGISTERS)))
            left -= len(group)
            # Order between the two ways is not defined while both wait.
            await self.settle()
        await traffic

    async def _host_traffic(self) -> None:
        base = self.config.memory.limit - (1 << 20)
        for _ in range(self.commands):
            address = base + self.rng.randrange(1 << 16)
            data = self.rng.randbytes(self.rng.randint(1, 300))
            await self.host_write(address, data)
            await self.host_read(address, len(data))


@pyuvm.test(**_LIMIT)
class RandomCommands(_Random):
    """On a DRAM that answers evenly."""


@pyuvm.test(**_LIMIT)
class Stalls(_Random):
    """On a DRAM that holds back at random: the bits may not change."""

    commands = 30
    dram_stall = 100


@pyuvm.test(**_LIMIT)
class SecondMemory(_Random):
    """On cocotbext-axi's RAM: the same bits as the model, so as the DPI DRAM."""

    commands = 30
    own_ram = True


@pyuvm.test(**_LIMIT)
class Operands(BusTest):
    """What random operands seldom are: every distance of elements, every word of every table and
    numbers beyond its end, immediates that are not given, several groups of scales, sums of
    zeros."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        for packets in _UNLIKELY:
            queued = list(packets(self.arena))
            self.place()
            await self.command(queued, Way.RING)
            await self.settle()


class _Failing(BusTest):
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


@pyuvm.test(**_LONG_LIMIT)
class Errors(_Failing):
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


@pyuvm.test(**_LIMIT)
class MalformedImages(_Failing):
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
            await self.command([use], Way.RING)
            await self.settle()


@pyuvm.test(**_LIMIT)
class ReloadedPrograms(_Failing):
    """A program in the place of another is the one that runs, and the other is loaded no more."""

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


@pyuvm.test(**_LIMIT)
class BusErrors(_Failing):
    """Every access of a command that DRAM refuses is reported; then all goes on."""

    async def stimulus(self) -> None:
        for name, make in FAULTS.items():
            for way, response in product(FIRST_QUEUE_WAYS, BusError):
                faulty = make(self.arena)
                fault = replace(faulty.fault, response=response)
                await self._refused(f"{name}, {response.name}", replace(faulty, fault=fault), way)
        ring = range(self.ring_base, self.ring_base + RING_ENTRIES * PACKET_BYTES)
        records = range(self.records_base, self.records_base + RING_ENTRIES * COMPLETION_BYTES)
        for name, addresses, write in (("packet", ring, False), ("record", records, True)):
            for response in BusError:
                fault = FaultRange(addresses.start, addresses.stop, not write, write, response)
                packet = Packet(Opcode.FENCE, FLAGS["IRQ"].mask)
                faulty = Faulty(packet, fault, range(0))
                await self._refused(f"{name}, {response.name}", faulty, Way.RING)

    async def _refused(self, name: str, faulty: Faulty, way: Way) -> None:
        self.place()
        for memory in (self.memory, self.model):
            memory.set_faults([faulty.fault])
        await self.expect_error(name, [faulty.packet], way)
        for memory in (self.memory, self.model):
            memory.set_faults([])
        if faulty.spoilt:
            self.arena.fill(faulty.spoilt.start, len(faulty.spoilt))
        await self.expect_success(way)
