# SPDX-License-Identifier: Apache-2.0
"""Register accesses on s_axil: items, driver on cocotbext-axi, passive monitor, agent."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.queue import Queue
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from pyuvm import (
    ConfigDB,
    uvm_agent,
    uvm_analysis_port,
    uvm_driver,
    uvm_monitor,
    uvm_sequence_item,
    uvm_sequencer,
)

from tb.agents.channel import accepted


class AxilItem(uvm_sequence_item):
    """One 32-bit access. `data`: the word written or read; `response`: the code of AXI."""

    def __init__(self, offset: int, data: int | None = None) -> None:
        super().__init__("axil")
        self.offset = offset
        self.write = data is not None
        self.data = data or 0
        self.response = 0


class AxilDriver(uvm_driver):
    """Performs items one after the other."""

    def build_phase(self) -> None:
        dut = ConfigDB().get(self, "", "dut")
        bus = AxiLiteBus.from_prefix(dut, "s_axil")
        self.master = AxiLiteMaster(bus, dut.clk, dut.rst_n, reset_active_level=False)

    async def run_phase(self) -> None:
        while True:
            item: AxilItem = await self.seq_item_port.get_next_item()
            if item.write:
                done = await self.master.write(item.offset, item.data.to_bytes(4, "little"))
            else:
                done = await self.master.read(item.offset, 4)
                item.data = int.from_bytes(done.data, "little")
            item.response = int(done.resp)
            self.seq_item_port.item_done()


class AxilMonitor(uvm_monitor):
    """Reports every access that the pins show, when its response is accepted."""

    def build_phase(self) -> None:
        self.ap = uvm_analysis_port("ap", self)
        self.dut: Any = ConfigDB().get(self, "", "dut")
        self._addresses: Queue[int] = Queue()
        self._data: Queue[int] = Queue()
        self._reads: Queue[int] = Queue()

    async def run_phase(self) -> None:
        cocotb.start_soon(self._collect("s_axil_aw", "addr", self._addresses))
        cocotb.start_soon(self._collect("s_axil_w", "data", self._data))
        cocotb.start_soon(self._collect("s_axil_ar", "addr", self._reads))
        cocotb.start_soon(self._read_data())
        async for answer in accepted(self.dut, "s_axil_b", ["resp"]):
            item = AxilItem(await self._addresses.get(), await self._data.get())
            item.response = answer["resp"]
            self.ap.write(item)

    async def _collect(self, prefix: str, field: str, queue: Queue[int]) -> None:
        async for beat in accepted(self.dut, prefix, [field]):
            queue.put_nowait(beat[field])

    async def _read_data(self) -> None:
        async for answer in accepted(self.dut, "s_axil_r", ["data", "resp"]):
            item = AxilItem(await self._reads.get())
            item.data, item.response = answer["data"], answer["resp"]
            self.ap.write(item)


class AxilAgent(uvm_agent):
    """Sequencer, driver and monitor of s_axil."""

    def build_phase(self) -> None:
        self.sequencer = uvm_sequencer("sequencer", self)
        self.driver = AxilDriver("driver", self)
        self.monitor = AxilMonitor("monitor", self)

    def connect_phase(self) -> None:
        self.driver.seq_item_port.connect(self.sequencer.seq_item_export)
