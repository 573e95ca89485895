# SPDX-License-Identifier: Apache-2.0
"""Runs inside the simulator: pushes one product and sleeps until the interrupt."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from tb.bench._product import TimedCommand, command_writes, fill_operands
from tb.bench.cocotb_speed import RESULT
from tb.sim.cocotb_run import attach_memory


async def write(dut: Any, offset: int, value: int) -> None:
    """One register, by hand: nothing of a bus agent runs while the time is taken."""
    dut.s_axil_awaddr.value = offset
    dut.s_axil_wdata.value = value
    dut.s_axil_wstrb.value = 0xF
    dut.s_axil_awvalid.value = 1
    dut.s_axil_wvalid.value = 1
    dut.s_axil_bready.value = 1
    waiting = {"aw": True, "w": True}
    while any(waiting.values()):
        await RisingEdge(dut.clk)
        for channel in [name for name, open_ in waiting.items() if open_]:
            if getattr(dut, f"s_axil_{channel}ready").value:
                getattr(dut, f"s_axil_{channel}valid").value = 0
                waiting[channel] = False
    while not dut.s_axil_bvalid.value:
        await RisingEdge(dut.clk)


@cocotb.test()
async def sleeps_until_the_interrupt(dut: Any) -> None:
    """CPU time and cycles from the doorbell to irq."""
    memory = attach_memory()
    fill_operands(memory.bytes)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 8)
    dut.rst_n.value = 1
    await ClockCycles(dut.clk, 1)
    for offset, value in command_writes():
        await write(dut, offset, value)
    cycle, cpu_s = memory.cycle, time.process_time()
    await RisingEdge(dut.irq)
    taken = TimedCommand(memory.cycle - cycle, time.process_time() - cpu_s)
    Path(RESULT).write_text(json.dumps(asdict(taken)))
