# SPDX-License-Identifier: Apache-2.0
"""Runs inside the simulator, in the copy engine of npu_top.sv. Started by test_sim_cocotb.py."""

import os
import signal
import sys
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.handle import HierarchyObject
from cocotb.triggers import ClockCycles, Event, FallingEdge, ReadOnly, RisingEdge, Timer

from tb.sim.cocotb_run import attach_memory

PERIOD_NS = 2
PINS = ("rst_n", "irq", "s_axil_arready", "s_axil_rvalid", "m_axi_rvalid", "m_axi_rdata")


async def reset(dut: HierarchyObject) -> None:
    if os.environ.get("STANDIN_CLOCK"):
        Clock(dut.clk, PERIOD_NS, "ns").start(start_high=False)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 5)
    dut.rst_n.value = 1
    await RisingEdge(dut.clk)


async def read(dut: HierarchyObject, offset: int) -> int:
    dut.s_axil_araddr.value = offset
    dut.s_axil_arvalid.value = 1
    dut.s_axil_rready.value = 1
    await RisingEdge(dut.clk)
    while not dut.s_axil_arready.value:
        await RisingEdge(dut.clk)
    dut.s_axil_arvalid.value = 0
    while not dut.s_axil_rvalid.value:
        await RisingEdge(dut.clk)
    return int(dut.s_axil_rdata.value)


async def write(dut: HierarchyObject, offset: int, value: int) -> None:
    dut.s_axil_awaddr.value = offset
    dut.s_axil_wdata.value = value
    dut.s_axil_awvalid.value = 1
    dut.s_axil_wvalid.value = 1
    dut.s_axil_bready.value = 1
    await RisingEdge(dut.clk)
    while not dut.s_axil_awready.value:
        await RisingEdge(dut.clk)
    dut.s_axil_awvalid.value = 0
    dut.s_axil_wvalid.value = 0
    while not dut.s_axil_bvalid.value:
        await RisingEdge(dut.clk)


async def copy(dut: HierarchyObject, bursts: int) -> None:
    for offset, value in ((0x34, 1), (0x40, 0), (0x48, 0x1000_0000), (0x50, 15), (0x54, bursts)):
        await write(dut, offset, value)
    await RisingEdge(dut.irq)


@cocotb.test()
async def copies_and_wakes_on_irq(dut: HierarchyObject) -> None:
    memory = attach_memory()
    count = 8 * 16 * 32
    data = bytes(index * 7 & 0xFF for index in range(count))
    memory.bytes[:count] = bytearray(data)
    await reset(dut)
    assert await read(dut, 0) == 0x4E50_5530
    await copy(dut, 8)
    assert memory.bytes[0x1000_0000 : 0x1000_0000 + count].tobytes() == data
    assert await read(dut, 0x58) == 0


@cocotb.test()
async def edge_shows_values_from_before_it(dut: HierarchyObject) -> None:
    await reset(dut)
    dut.s_axil_araddr.value = 0
    dut.s_axil_arvalid.value = 1
    dut.s_axil_rready.value = 0
    await RisingEdge(dut.clk)  # accepts the address
    assert dut.s_axil_arready.value == 1
    assert dut.s_axil_rvalid.value == 0
    dut.s_axil_arvalid.value = 0
    await ReadOnly()
    assert dut.s_axil_rvalid.value == 1
    await FallingEdge(dut.clk)
    assert dut.s_axil_rvalid.value == 1
    await RisingEdge(dut.clk)
    assert dut.s_axil_rvalid.value == 1
    dut.s_axil_rready.value = 1
    await RisingEdge(dut.clk)  # takes the answer
    assert dut.s_axil_rvalid.value == 1
    await ReadOnly()
    assert dut.s_axil_rvalid.value == 0


@cocotb.test()
async def sleeping_passes_exactly_the_cycles(dut: HierarchyObject) -> None:
    await reset(dut)
    await FallingEdge(dut.clk)
    memory = attach_memory()
    for cycles in (1, 2, 1000, 54_321):
        before = memory.cycle
        await Timer(cycles * PERIOD_NS, "ns")
        assert memory.cycle - before == cycles
    before = memory.cycle
    await ClockCycles(dut.clk, 50)
    assert memory.cycle - before == 50


@cocotb.test()
async def transcript(dut: HierarchyObject) -> None:
    lines = []

    async def record() -> None:
        while True:
            await RisingEdge(dut.clk)
            lines.append(" ".join(str(getattr(dut, pin).value) for pin in PINS))

    await reset(dut)
    cocotb.start_soon(record())
    for _ in range(3):
        await copy(dut, 2)
        await write(dut, 0x30, 1)
        await Timer(37, "ns")
        lines.append(f"cycles {await read(dut, 0x20)}")
    Path(os.environ["STANDIN_TRANSCRIPT"]).write_text("\n".join(lines))


@cocotb.test()
async def seed_decides_power_up(dut: HierarchyObject) -> None:
    await reset(dut)
    Path("state").write_text(str(await read(dut, 0x64)))


@cocotb.test()
async def its_assertions_alone_are_rewritten(_: HierarchyObject) -> None:
    """pytest leaves its name in what it rewrote; that of everything imported would cost seconds."""
    assert "@pytest_ar" in globals()
    assert "@pytest_ar" not in vars(sys.modules["tb.sim.cocotb_run"])


@cocotb.test()
async def hidden_signals_stay_hidden(dut: HierarchyObject) -> None:
    assert not hasattr(dut, "dram_rdata")
    assert not hasattr(dut, "u_npu") or not hasattr(dut.u_npu, "busy_q")


@cocotb.test()
async def fails(dut: HierarchyObject) -> None:
    await reset(dut)
    assert await read(dut, 0) == 0, "not the expected ID"


@cocotb.test()
async def fails_an_assertion_of_the_design(dut: HierarchyObject) -> None:
    await reset(dut)
    await write(dut, 0x60, 1)
    await ClockCycles(dut.clk, 10)


@cocotb.test()
async def never_ends(dut: HierarchyObject) -> None:
    await Event().wait()


@cocotb.test()
async def dies(dut: HierarchyObject) -> None:
    await reset(dut)
    os.kill(os.getpid(), signal.SIGKILL)
    await Timer(1, "us")
