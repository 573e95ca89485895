# SPDX-License-Identifier: Apache-2.0
"""The UVM tests behind TEST=bus."""

from __future__ import annotations

import cocotb
import pyuvm

from driver.isa import DEVICE_ID, ISA_VERSION, Packet, csr
from tb.agents.command import Way
from tb.env.base_test import BusTest
from tb.seqs.packets import BREAKS, legal, matmul

_LIMIT = {"timeout_time": 20, "timeout_unit": "ms"}
"""Of simulated time: a bench that hangs ends."""
_DECERR = 3
_LONGEST = 20
"""Largest size of a random operand's dimension."""


@pyuvm.test(**_LIMIT)
class Registers(BusTest):
    """Reset values, what can be written, and what no register answers."""

    async def stimulus(self) -> None:
        assert await self.read(csr.ID) == DEVICE_ID
        assert await self.read(csr.VERSION) == ISA_VERSION
        assert await self.read(csr.CONFIG) & 0xFF == self.config.array_size
        for offset in (csr.RING_BASE_LO, csr.RING_BASE_HI, csr.CPL_BASE_LO, csr.CPL_BASE_HI):
            kept = await self.read(offset)
            for value in (0xFFFF_FFFF, 0, self.rng.getrandbits(32), kept):
                await self.write(offset, value)
                await self.read(offset)
        for index in range(csr.CMD_WORD_COUNT):
            await self.write(csr.CMD_WORD + 4 * index, self.rng.getrandbits(32))


@pyuvm.test(**_LIMIT)
class FrontDoor(BusTest):
    """What goes through s_axi is what the back door sees, at any alignment, both ways."""

    async def stimulus(self) -> None:
        base = self.arena.place(1 << 15, 4096)
        for size in (1, 2, 3, 31, 32, 33, 64, 255, 4096, 5000):
            address = base + self.rng.randrange(1 << 14)
            data = self.rng.randbytes(size)
            assert await self.host_write(address, data) == 0
            assert self.memory.read(address, size) == data
            behind = self.rng.randbytes(size)
            self.memory.write(address, behind)
            self.model.write_memory(address, behind)
            assert await self.host_read(address, size) == (behind, 0)
        beyond = self.config.memory.limit
        assert await self.host_write(beyond, bytes(64)) == _DECERR
        assert (await self.host_read(beyond, 64))[1] == _DECERR


class _Random(BusTest):
    """Random commands in random groups by both ways, host traffic beside them."""

    commands = 60

    async def stimulus(self) -> None:
        traffic = cocotb.start_soon(self._host_traffic())
        left = self.commands
        while left:
            group = [legal(self.arena, _LONGEST) for _ in range(self.rng.randint(1, min(5, left)))]
            self.place()
            await self.command(group, self.rng.choice((Way.RING, Way.RING, Way.WINDOW)))
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
class Errors(BusTest):
    """Every way to break a packet stops the queue with the model's code; then all goes on."""

    async def stimulus(self) -> None:
        for name, broken in BREAKS.items():
            for way in Way:
                good = matmul(self.arena, _LONGEST)
                bad = broken(good, self.arena)
                after = matmul(self.arena, _LONGEST)
                self.place()
                await self._expect_error(name, [good, bad, after], way)
                recovered = matmul(self.arena, _LONGEST)
                self.place()
                await self.command([recovered], way)
                await self.settle()

    async def _expect_error(self, name: str, packets: list[Packet], way: Way) -> None:
        await self.command(packets, way)
        await self.settle()
        code = await self.read(csr.ERROR_CODE)
        assert code, f"{name}: accepted"
        await self.write(csr.CTRL, csr.CTRL_ERROR_ACK_MASK)
        await self.env.command.driver.resync()
