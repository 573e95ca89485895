# SPDX-License-Identifier: Apache-2.0
"""Reset, bring-up and end of every UVM test of this bench."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge, SimTimeoutError, with_timeout
from cocotb.utils import get_sim_time
from pyuvm import ConfigDB, uvm_test

from driver.backend.ports import describe
from driver.config import load_config
from driver.isa import Packet
from driver.results import RunSpec, read_json
from golden.backend import CmodelBackend
from tb.agents.channel import OKAY
from tb.agents.command import CommandItem
from tb.agents.host import HostItem
from tb.agents.packet_queue import Way
from tb.env.comparison import DeviceComparison
from tb.env.env import NpuEnv
from tb.env.handover import SPEC_VARIABLE, SUMMARY_FILE
from tb.env.memory import DpiMemory, RamMemory
from tb.env.verbs import RING_ENTRIES, DeviceVerbs
from tb.env.verdict import Mismatch, expect, located
from tb.seqs.access import perform

_RESET_CYCLES = 5
_PERIOD_NS = 2
"""Of clk: tb/sim/core/simulation.h."""
_HOST_OWN = 1 << 20
"""Bytes at the end of the memory that only the host uses."""


class BusTest(DeviceVerbs, uvm_test):
    """Subclasses write `stimulus`; memory, rings and model are up when it starts."""

    own_ram = False
    """Put cocotbext-axi's RAM in the place of the DPI DRAM."""
    limit_ms = 4
    """Of simulated time: a device that hangs ends as a failure."""
    slow_host = False
    """The host on s_axi takes answers late and in runs."""

    def build_phase(self) -> None:
        self.dut: Any = cocotb.top
        spec = read_json(Path(os.environ[SPEC_VARIABLE]), RunSpec)
        self.config = load_config(spec.config_file, spec.config)
        self.rng = random.Random(f"{spec.seed}/{type(self).__name__}")
        own = RamMemory(self.dut, self.config.memory) if self.own_ram else None
        self.memory = own or DpiMemory()
        self.model = CmodelBackend(self.config)
        self.lay_out()
        shared = {
            "dut": self.dut,
            "memory": self.memory,
            "model": self.model,
            "ring_bases": (self.ring_base, self.second_ring_base),
            "ring_entries": RING_ENTRIES,
            "records": self.records,
            "where": self._where,
        }
        for name, value in shared.items():
            ConfigDB().set(None, "*", name, value)
        self.env = NpuEnv("env", self)

    def end_of_elaboration_phase(self) -> None:
        self.env.scoreboard.compares = self.compares
        if self.slow_host:
            self.env.host.driver.answer_slowly(random.Random(self.rng.getrandbits(32)))

    async def run_phase(self) -> None:
        self.raise_objection()
        with located(self._where):
            try:
                await with_timeout(self._run(), self.limit_ms, "ms")
            except SimTimeoutError:
                raise Mismatch(f"hung: no end in {self.limit_ms} ms of simulated time") from None
        self._write_summary()
        self.drop_objection()

    async def _run(self) -> None:
        await self._reset()
        await self.at_reset()
        await self.bring_up()
        await self.stimulus()
        await self.settle()
        self.found.compare_memory()

    async def stimulus(self) -> None:
        """What the test does."""
        raise NotImplementedError

    # ------------------------------------------------------------------ on the pins
    @property
    def found(self) -> DeviceComparison:
        return self.env.scoreboard.found

    async def read(self, offset: int) -> int:
        return await self.env.command.driver.read(offset)

    async def write(self, offset: int, value: int) -> None:
        await self.env.command.driver.write(offset, value)

    async def refused(self, offset: int) -> None:
        await self.env.command.driver.refused(offset, self.rng.getrandbits(32))

    async def queue(self, packets: list[Packet], way: Way) -> None:
        self.found.history.note(packets, way)
        await perform(self.env.command.sequencer, CommandItem(packets, way))

    async def resync(self) -> None:
        await self.env.command.driver.queue.resync()
        if self.second_in_use:
            await self.env.command.driver.second.resync()

    async def irq_within(self, cycles: int) -> bool:
        if not self.dut.irq.value:
            # A timer, as waiting for each edge of the clock would run Python in each cycle.
            with suppress(SimTimeoutError):
                await with_timeout(RisingEdge(self.dut.irq), cycles * _PERIOD_NS, "ns")
        return bool(self.dut.irq.value)

    async def irq_after(self, cycles: int) -> int:
        await ClockCycles(self.dut.clk, cycles)
        return int(self.dut.irq.value)

    def beside(self, traffic: Coroutine[Any, Any, None]) -> Awaitable[None]:
        return cocotb.start_soon(traffic)

    async def host_write(self, address: int, data: bytes, response: int = OKAY) -> None:
        """Through the port; Mismatch unless AXI's response is this code."""
        await self._host(HostItem(address, data), len(data), response)

    async def host_read(self, address: int, size_bytes: int, response: int = OKAY) -> bytes:
        """Likewise: the data."""
        item = HostItem(address, size_bytes=size_bytes)
        await self._host(item, size_bytes, response)
        self.env.scoreboard.host_reads_expected += 0 if response else size_bytes
        return item.data

    def host_traffic(self, times: int, lengths: Sequence[int]) -> Coroutine[Any, Any, None]:
        """So many random writes and reads through the port, each up to one of these lengths in
        bytes, in memory that nothing else uses. Its random numbers are its own: how far it has come
        when the test draws one decides nothing."""
        return self._host_traffic(random.Random(self.rng.getrandbits(64)), times, lengths)

    async def _host_traffic(self, rng: random.Random, times: int, lengths: Sequence[int]) -> None:
        base = self.config.memory.limit - _HOST_OWN
        for _ in range(times):
            address = base + rng.randrange(_HOST_OWN >> 4)
            data = rng.randbytes(rng.randint(1, rng.choice(lengths)))
            await self.host_write(address, data)
            await self.host_read(address, len(data))

    async def _host(self, item: HostItem, size_bytes: int, response: int) -> None:
        await perform(self.env.host.sequencer, item)
        how = "write" if item.write else "read"
        where = f"{size_bytes} bytes at {item.address:#x}"
        expect(f"response to a {how} of {where}", item.response, response)

    # ------------------------------------------------------------------ own
    def _where(self) -> str:
        cycle = int(get_sim_time("ns")) // _PERIOD_NS
        signals = (self.dut.waiting, self.dut.open_reads, self.dut.open_writes)
        ports = describe(*(int(signal.value) for signal in signals))
        return "; ".join([f"cycle {cycle}, {self.found.history.progress()}", *ports])

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

    def _write_summary(self) -> None:
        summary = {
            "compared": self.found.total,
            "by kind": self.found.compared,
            "commands": self.env.scoreboard.commands.total,
        }
        Path(SUMMARY_FILE).write_text(json.dumps(summary), encoding="utf-8")
