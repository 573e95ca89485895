# SPDX-License-Identifier: Apache-2.0
"""Runs inside the simulator: breaks one rule of AXI after another. Started by
test_sim_assertions.py, which compares the assertions that failed with the rules broken."""

import json
import logging
from pathlib import Path

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import ClockCycles
from cocotb.utils import get_sim_time

Pins = dict[str, int]

AW: Pins = {"s_axi_awvalid": 1, "s_axi_awid": 1, "s_axi_awsize": 5, "s_axi_awburst": 1}
AR: Pins = {"s_axi_arvalid": 1, "s_axi_arid": 1, "s_axi_arsize": 5, "s_axi_arburst": 1}
W: Pins = {"s_axi_wvalid": 1, "s_axi_wlast": 1}
B: Pins = {"ext_axi_bvalid": 1, "ext_axi_bid": 1}
R: Pins = {"ext_axi_rvalid": 1, "ext_axi_rid": 1, "ext_axi_rlast": 1}
OPEN: Pins = {
    **dict.fromkeys(("ext_axi_awready", "ext_axi_wready", "ext_axi_arready"), 1),
    **dict.fromkeys(("s_axi_bready", "s_axi_rready"), 1),
}
WRITTEN: list[Pins] = [AW | OPEN, W | OPEN]
NARROW: Pins = {"s_axi_awsize": 2}
LITE_AW: Pins = {"s_axil_awvalid": 1}
LITE_W: Pins = {"s_axil_wvalid": 1}
LITE_AR: Pins = {"s_axil_arvalid": 1}

SCENARIOS: dict[str, list[Pins]] = {
    "legal": [
        AW,
        AW | OPEN,
        W | OPEN,
        B,
        B | OPEN,
        AR | {"s_axi_arlen": 1},
        AR | {"s_axi_arlen": 1} | OPEN,
        R | {"ext_axi_rlast": 0} | OPEN,
        R,
        R | OPEN,
        AW | NARROW | {"s_axi_awaddr": 4} | OPEN,
        W | {"s_axi_wstrb": 0xF0} | OPEN,
        B | OPEN,
    ],
    "legal: data ahead of addresses": [
        *[W | {"s_axi_wstrb": 0xFFFF_FFFF} | OPEN] * 2,  # in the second's place a narrow one was
        *[AW | OPEN] * 2,
        *[B | OPEN] * 2,
    ],
    "AwStable": [AW, AW | {"s_axi_awaddr": 64}],
    "AwStable: withdrawn": [AW, {}],
    "WStable": [W, W | {"s_axi_wdata": 1}],
    "BStable": [*WRITTEN, B, B | {"ext_axi_bresp": 2}],
    "ArStable": [AR, AR | {"s_axi_arlen": 1}],
    "RStable": [AR | OPEN, R, R | {"ext_axi_rdata": 1 << 200}],
    "AwLegal": [AW | {"s_axi_awburst": 3} | OPEN],
    "AwLegal: crosses 4 KiB": [AW | {"s_axi_awaddr": 4096 - 32, "s_axi_awlen": 1} | OPEN],
    "ArLegal": [AR | {"s_axi_arburst": 2, "s_axi_arlen": 2} | OPEN],
    "WLastPlace": [AW | {"s_axi_awlen": 1} | OPEN, W | OPEN],
    "WStrbLanes": [AW | NARROW | {"s_axi_awaddr": 4} | OPEN, W | {"s_axi_wstrb": 0x1F0} | OPEN],
    "WStrbLanes: before the address": [
        AW | {"s_axi_awaddr": 5} | OPEN,
        W | {"s_axi_wstrb": 0x10} | OPEN,
    ],
    "BHasAddress": [*WRITTEN, B | {"ext_axi_bid": 2} | OPEN],
    "BAfterData": [AW | OPEN, B | OPEN],
    "RHasAddress": [R | OPEN],
    "RLastPlace": [AR | {"s_axi_arlen": 1} | OPEN, R | OPEN],
    "RLastPlace: none": [AR | OPEN, R | {"ext_axi_rlast": 0} | OPEN],
    "NotTooManyReads": [AR | OPEN] * 1025,
    "NotTooManyWrites": [AW | OPEN] * 1025,
    "lite AwStable": [LITE_AW, LITE_AW | {"s_axil_awaddr": 4}],
    "lite WStable": [LITE_W, LITE_W | {"s_axil_wdata": 4}],
    "lite ArStable": [LITE_AR, LITE_AR | {"s_axil_araddr": 4}],
}
"""What to do after a reset, one entry per cycle; a pin that is not named is 0. The first word, or
the second after `lite`, is the rule."""
HELD_IN_RESET: dict[str, Pins] = {"QuietAfterReset": AR, "lite QuietAfterReset": LITE_AR}


@cocotb.test()
async def break_the_rules(dut: HierarchyObject) -> None:
    """Leaves the times of each scenario, in ps, in spans.json."""
    logging.getLogger("cocotb").setLevel(logging.WARNING)
    cases = [pins for steps in SCENARIOS.values() for pins in steps]
    names = sorted({name for pins in [*cases, *HELD_IN_RESET.values()] for name in pins})
    state: Pins = {}

    def drive(pins: Pins) -> None:
        for name in names:
            value = pins.get(name, 0)
            if state.get(name) != value:
                getattr(dut, name).value = value
                state[name] = value

    async def reset(pins: Pins) -> None:
        dut.rst_n.value = 0
        dut.dram_on.value = 0
        drive(pins)
        await ClockCycles(dut.clk, 3)
        dut.rst_n.value = 1

    spans: dict[str, tuple[int, int]] = {}
    for name in (*SCENARIOS, *HELD_IN_RESET):
        start = int(get_sim_time("ps"))
        await reset(HELD_IN_RESET.get(name, {}))
        await ClockCycles(dut.clk, 2)
        for pins in SCENARIOS.get(name, []):
            drive(pins)
            await ClockCycles(dut.clk, 1)
        if name not in HELD_IN_RESET:
            drive({})
        await ClockCycles(dut.clk, 1)
        # The last pins took effect at this edge; what is still open ends in the next reset.
        dut.rst_n.value = 0
        await ClockCycles(dut.clk, 1)
        spans[name] = (start, int(get_sim_time("ps")))
    Path("spans.json").write_text(json.dumps(spans))
