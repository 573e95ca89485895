# SPDX-License-Identifier: Apache-2.0
"""The UVM tests behind TEST=bus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import pyuvm

from driver.isa import (
    DEVICE_ID,
    FLAGS,
    ISA_VERSION,
    DType,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from tb.agents.channel import DECERR
from tb.agents.packet_queue import MOST_READS, Way
from tb.env.base_test import BusTest
from tb.env.comparison import TIMED_REGISTERS
from tb.env.verbs import IRQ_ALL
from tb.env.verdict import Mismatch, expect, expect_bytes
from tb.seqs.int4 import scale_groups, small_scales, zero_weights
from tb.seqs.large import far_product, long_dimensions
from tb.seqs.loading import (
    table_reads,
    unused_immediates,
)
from tb.seqs.packets import (
    fill_words,
    large_sums,
    legal,
    long_copy,
    long_sum,
    offset_copies,
    plain_copy,
    repeating_copies,
    sums_from_a_column,
)
from tb.seqs.streams import crowded_scatters, strided_vectors
from tb.tests._counted import CountedCommands
from tb.tests._failing import (
    BrokenImages,
    BrokenPackets,
    RefusedAccesses,
    Reloads,
    SpoiledPackets,
)
from tb.tests._rings import RingSizes

_HOST_BYTES = (300,)
"""Of an access of the host, at most."""
_SLOW_HOST_BYTES = (300, 300, 300, 20_000)
"""Likewise; some are of many bursts, more than the buffers on the way to a slow host hold."""
_HOST_BEATS = 256
"""What npu_host_write holds of the host's data."""
_BURST_BYTES = 4096
"""No burst crosses a multiple of it."""
_TERMS = 2000
"""Of a sum that takes longer than to push the packet behind it, or to read two registers."""
_COPIED_BEATS = 1 << 14
"""Of a COPY that takes longer than that sum."""
_HELD = 200
"""Cycles, more than an answer takes."""
_FAR_STRIDE = 252
"""Bytes between the words behind the last register that are tried."""
_LONGEST = 20
"""Largest size of a random operand's dimension."""
_UNLIKELY = (
    *(strided_vectors, table_reads, unused_immediates, scale_groups, zero_weights),
    *(small_scales, large_sums, sums_from_a_column),
)
"""Packets with what random ones seldom have."""


@pyuvm.test()
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


@pyuvm.test()
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
                await self.finish()
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


@pyuvm.test()
class Emptied(BusTest):
    """`empty` comes with the last of two commands alone, also of one that was put aside."""

    compares = ("registers", "memory")
    second_in_use = True

    async def stimulus(self) -> None:
        for way in Way:
            both = [long_sum(self.arena, _TERMS) for _ in range(2)]
            await self._last_of_two(way, both)
        await self._put_aside()

    async def _put_aside(self) -> None:
        """The last one waits for the other queue, which has one more packet."""
        copy = plain_copy(self.arena, _COPIED_BEATS * self.config.bus_bits // 8)
        self.place()
        await self.command([copy], Way.SECOND_RING)
        await self.irq_after(_HELD)
        flags = flag_word(DType.FP32, DType.INT8)
        waits = Packet(Opcode.FILL, flags, dst=copy.dst, params=(64, self.rng.getrandbits(8)))
        beside = fill_words(self.arena, 1)
        both = [long_sum(self.arena, _TERMS // 2), waits]
        await self._last_of_two(Way.REGISTERS, both, [beside])

    async def _last_of_two(
        self, way: Way, both: list[Packet], beside: Sequence[Packet] = ()
    ) -> None:
        """`beside`: what the second queue gets as well."""
        completed = way.registers.completed
        first = await self.read(completed) + 1
        self.place()
        await self.write(csr.IRQ_STATUS, IRQ_ALL)
        await self.command(both, way)
        if beside:
            await self.command([*beside], Way.SECOND_RING)
        for _ in range(MOST_READS):
            if await self.read(completed) == first:
                break
        else:
            raise Mismatch(f"hung: a queue is busy in {MOST_READS} reads")
        causes = await self.read(csr.IRQ_STATUS)
        expect("COMPLETED while the second one runs", await self.read(completed), first)
        expect("causes in IRQ_STATUS between the ends of two commands", causes, 0)
        await self.finish()
        causes, expected = await self.read(csr.IRQ_STATUS), self.model.read_csr(csr.IRQ_STATUS)
        expect("causes in IRQ_STATUS behind them", causes, expected)
        await self.settle()


@pyuvm.test()
class CommandCounters(CountedCommands):
    """What commands of each engine add to the counters, and have in their records."""


@pyuvm.test()
class FrontDoor(BusTest):
    """What goes through s_axi is what the back door sees, at any alignment, both ways."""

    compares = ("registers", "host reads")

    async def stimulus(self) -> None:
        base = self.arena.place(1 << 15, 4096)
        for size in (1, 2, 3, 31, 32, 33, 64, 255, 4096, 5000):
            address = base + self.rng.randrange(1 << 14)
            data = self.rng.randbytes(size)
            await self.host_write(address, data)
            expect_bytes("written through s_axi", address, self.memory.read(address, size), data)
            behind = self.rng.randbytes(size)
            self.memory.write(address, behind)
            self.model.write_memory(address, behind)
            found = await self.host_read(address, size)
            expect_bytes("read through s_axi", address, found, behind)
        await self._beyond_the_memory()
        # With its data behind the address: the buffer of data is empty, and held last beats before.
        beat = self.config.bus_bits // 8
        for at in range(_HOST_BEATS):
            await self.host_write(base + at * beat, bytes(beat))
        held = self.beside(self.env.host.driver.hold_data(_HELD))
        await self._beyond_the_memory()
        await held
        # With the data of a short burst, and of the next one, before their addresses.
        held = self.beside(self.env.host.driver.hold_addresses(_HELD))
        address = base + _BURST_BYTES - 2 * beat
        await self.host_write(address, data)
        await held
        expect_bytes("written ahead of its address", address, self.memory.read(address, size), data)
        await self.host_write(base, data)
        expect_bytes("written behind a refused burst", base, self.memory.read(base, size), data)

    async def _beyond_the_memory(self) -> None:
        beyond = self.config.memory.limit
        await self.host_write(beyond, bytes(64), DECERR)
        await self.host_read(beyond, 64, DECERR)


class _Random(BusTest):
    """Random commands in random groups by both ways, host traffic beside them."""

    compares = ("registers", "memory", "host reads")
    commands = 60

    async def stimulus(self) -> None:
        directed = [long_copy(self.arena), *offset_copies(self.arena, self.config.bus_bits // 8)]
        directed += [*repeating_copies(self.arena), *crowded_scatters(self.arena)]
        self.place()
        await self.command(directed, Way.RING)
        await self.settle()
        lengths = _SLOW_HOST_BYTES if self.slow_host else _HOST_BYTES
        traffic = self.beside(self.host_traffic(self.commands, lengths))
        left = self.commands
        while left:
            group = [legal(self.arena, _LONGEST) for _ in range(self.rng.randint(1, min(5, left)))]
            self.place()
            await self.command(group, self.rng.choice((Way.RING, Way.RING, Way.REGISTERS)))
            left -= len(group)
            # Order between the two ways is not defined while both wait.
            await self.settle()
        await traffic


@pyuvm.test()
class RandomCommands(_Random):
    """On a DRAM that answers evenly."""


@pyuvm.test()
class Stalls(_Random):
    """On a DRAM that holds back at random, and beside a host that takes answers late: the bits may
    not change."""

    commands = 30
    dram_stall = 100
    slow_host = True


@pyuvm.test()
class SecondMemory(_Random):
    """On cocotbext-axi's RAM: the same bits as the model, so as the DPI DRAM."""

    commands = 30
    own_ram = True


@pyuvm.test()
class Operands(BusTest):
    """What random operands seldom are: every distance of elements, every word of every table and
    numbers beyond its end, immediates that are not given, several groups of scales, subnormal
    ones, sums of zeros, sums that start from a column, operands far apart."""

    compares = ("registers", "memory")

    async def stimulus(self) -> None:
        memory = self.config.memory
        distance = 1 << (memory.limit - memory.base - 1).bit_length() - 1
        far = partial(far_product, distance=distance)
        for packets in (*_UNLIKELY, far):
            queued = list(packets(self.arena))
            self.place()
            await self.command(queued, Way.RING)
            await self.settle()


@pyuvm.test()
class LongDimensions(BusTest):
    """Sizes and indices beyond 16 bits."""

    compares = ("registers", "memory")
    limit_ms = 60
    """Of commands of many rows: with the least of every buffer each row costs a latency."""
    patience = 4_000_000

    async def stimulus(self) -> None:
        for packet in long_dimensions(self.arena):
            self.place()
            await self.command([packet], Way.RING)
            await self.settle()


@pyuvm.test()
class Errors(BrokenPackets):
    """Every way to break a packet stops the queue with the model's code; then all goes on."""

    limit_ms = 6
    """Of the longest test, four times what it needs."""


@pyuvm.test()
class SeveralErrors(SpoiledPackets):
    """Packets with several things wrong at a time give the error that comes first in the order of
    checks."""


@pyuvm.test()
class MalformedImages(BrokenImages):
    """No malformed image is loaded, and none harms the program that was there before."""


@pyuvm.test()
class ReloadedPrograms(Reloads):
    """A program in the place of another is the one that runs, and the other is loaded no more."""


@pyuvm.test()
class BusErrors(RefusedAccesses):
    """Every access of a command that DRAM refuses is reported; then all goes on."""


@pyuvm.test()
class Rings(RingSizes):
    """Each queue with rings and records of every kind of size, and without records."""
