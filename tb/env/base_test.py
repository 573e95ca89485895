# SPDX-License-Identifier: Apache-2.0
"""Reset, bring-up and end of every UVM test of this bench."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from pyuvm import ConfigDB, uvm_test

from driver.config import HwConfig, load_config
from driver.isa import COMPLETION_BYTES, PACKET_BYTES, DeviceState, Packet, csr
from driver.results import RunSpec, read_json
from golden.backend import CmodelBackend
from tb.agents.axil import AxilItem
from tb.agents.command import CommandItem, Way
from tb.agents.host import HostItem
from tb.env.env import NpuEnv
from tb.env.memory import BenchMemory, DpiMemory, RamMemory
from tb.env.runner import SPEC_VARIABLE, SUMMARY_FILE
from tb.env.tally import Compared
from tb.env.verdict import expect
from tb.seqs.access import perform
from tb.seqs.arena import Arena

RING_ENTRIES = 8
_IRQ_ALL = csr.IRQ_ENABLE_COMPLETE_MASK | csr.IRQ_ENABLE_EMPTY_MASK | csr.IRQ_ENABLE_ERROR_MASK
_RESET_CYCLES = 5


class BusTest(uvm_test):
    """Subclasses write `stimulus`; memory, rings and model are up when it starts."""

    own_ram = False
    """Put cocotbext-axi's RAM in the place of the DPI DRAM."""
    dram_stall = 0
    compares: tuple[Compared, ...] = ("registers",)
    """Of these the scoreboard must have compared something, or the test is no test."""

    def build_phase(self) -> None:
        self.dut: Any = cocotb.top
        spec = read_json(Path(os.environ[SPEC_VARIABLE]), RunSpec)
        self.config: HwConfig = load_config(spec.config_file, spec.config)
        self.rng = random.Random(f"{spec.seed}/{type(self).__name__}")
        window = self.config.memory
        self.memory: BenchMemory = (
            RamMemory(self.dut, window.limit) if self.own_ram else DpiMemory()
        )
        self.model = CmodelBackend(self.config)
        self.ring_base = window.base
        self.records_base = window.base + 4096
        self.arena = Arena(self.rng, window.base + (1 << 16), window.base + (1 << 24))
        shared = {
            "dut": self.dut,
            "memory": self.memory,
            "model": self.model,
            "ring_base": self.ring_base,
            "ring_entries": RING_ENTRIES,
            "records": range(
                self.records_base, self.records_base + RING_ENTRIES * COMPLETION_BYTES
            ),
        }
        for name, value in shared.items():
            ConfigDB().set(None, "*", name, value)
        self.env = NpuEnv("env", self)

    def end_of_elaboration_phase(self) -> None:
        self.env.scoreboard.compares = self.compares

    async def run_phase(self) -> None:
        self.raise_objection()
        await self._reset()
        await self._bring_up()
        await self.stimulus()
        await self.settle()
        self.env.scoreboard.compare_memory()
        self._write_summary()
        self.drop_objection()

    async def stimulus(self) -> None:
        """What the test does."""
        raise NotImplementedError

    # ------------------------------------------------------------------ for subclasses
    async def read(self, offset: int) -> int:
        """A register, on the pins."""
        return await self.env.command.driver.read(offset)

    async def write(self, offset: int, value: int) -> None:
        """Likewise."""
        await self.env.command.driver.write(offset, value)

    async def host_write(self, address: int, data: bytes) -> int:
        """Through the window; AXI's response code."""
        item = HostItem(address, data)
        await perform(self.env.host.sequencer, item)
        return item.response

    async def host_read(self, address: int, size_bytes: int) -> tuple[bytes, int]:
        """Likewise: data and response code."""
        item = HostItem(address, size_bytes=size_bytes)
        await perform(self.env.host.sequencer, item)
        self.env.scoreboard.host_reads_expected += 0 if item.response else size_bytes
        return item.data, item.response

    def place(self) -> None:
        """The arena's new contents into both memories, through the back door."""
        for address, data in self.arena.taken():
            self.memory.write(address, data)
            self.model.write_memory(address, data)

    async def command(self, packets: list[Packet], way: Way) -> None:
        """Queue packets."""
        self.env.scoreboard.idle = False
        await perform(self.env.command.sequencer, CommandItem(packets, way))

    async def settle(self) -> None:
        """Wait until nothing is queued or the queue has stopped; then compare all registers."""
        while not await self._is_idle():
            state = DeviceState(await self.read(csr.STATUS) & csr.STATUS_STATE_MASK)
            if state is not DeviceState.BUSY:
                done, expected = await self.read(csr.COMPLETED), self.model.read_csr(csr.COMPLETED)
                expect(f"commands completed in state {state.name}", done, expected)
                break
            if not self.dut.irq.value:
                await RisingEdge(self.dut.irq)
            await self.write(csr.IRQ_STATUS, _IRQ_ALL)
        self.env.scoreboard.idle = True
        for offset in sorted(csr.OFFSETS.values()):
            await self.read(offset)

    async def acknowledge(self) -> None:
        """Leave ERROR; what was queued is gone on both sides."""
        await self.write(csr.CTRL, csr.CTRL_ERROR_ACK_MASK)
        await self.env.command.driver.resync()

    async def _is_idle(self) -> bool:
        """Finished, or stopped by an error, as far as the model has come."""
        done = await self.read(csr.COMPLETED)
        return done == self.model.read_csr(csr.COMPLETED)

    # ------------------------------------------------------------------ own
    async def _reset(self) -> None:
        dut = self.dut
        dut.dram_on.value = int(not self.own_ram)
        dut.dram_latency.value = self.config.dram.latency_cycles
        dut.dram_stall.value = self.dram_stall
        dut.dram_seed.value = self.rng.getrandbits(32)
        dut.rst_n.value = 0
        await ClockCycles(dut.clk, _RESET_CYCLES)
        dut.rst_n.value = 1
        await ClockCycles(dut.clk, 2)

    async def _bring_up(self) -> None:
        log2 = RING_ENTRIES.bit_length() - 1
        self.memory.write(self.ring_base, bytes(RING_ENTRIES * PACKET_BYTES))
        settings = {
            csr.RING_BASE_LO: self.ring_base & 0xFFFF_FFFF,
            csr.RING_BASE_HI: self.ring_base >> 32,
            csr.RING_CTRL: log2 << csr.RING_CTRL_LOG2_ENTRIES_LSB | csr.RING_CTRL_ENABLE_MASK,
            csr.CPL_BASE_LO: self.records_base & 0xFFFF_FFFF,
            csr.CPL_BASE_HI: self.records_base >> 32,
            csr.CPL_CTRL: log2 << csr.CPL_CTRL_LOG2_ENTRIES_LSB | csr.CPL_CTRL_ENABLE_MASK,
            csr.IRQ_ENABLE: _IRQ_ALL,
        }
        for offset, value in settings.items():
            await perform(self.env.axil.sequencer, AxilItem(offset, value))

    def _write_summary(self) -> None:
        board = self.env.scoreboard
        summary = {
            "compared": board.total,
            "by kind": board.compared,
            "mismatches": board.mismatches,
            "commands": board.commands.total,
        }
        Path(SUMMARY_FILE).write_text(json.dumps(summary), encoding="utf-8")
