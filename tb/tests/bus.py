# SPDX-License-Identifier: Apache-2.0
"""The pins: registers, host port, commands by both ways, errors, and a second memory model."""

from __future__ import annotations

from driver.test_info import TestInfo

MODULE = "tb.tests._bus"
TESTS = (
    "Registers",
    "FrontDoor",
    "RandomCommands",
    "Stalls",
    "Errors",
    "SecondMemory",
    "Interrupts",
    "BusErrors",
    "MalformedImages",
    "ReloadedPrograms",
    "Operands",
    "CommandCounters",
    "SeveralErrors",
    "Rings",
    "LongDimensions",
    "Emptied",
)
"""Each runs in a simulator of its own."""
INFO = TestInfo(
    name="bus",
    summary="UVM bench on the pins: registers, front door, random commands, errors, AxiRam",
    kind="cocotb",
    backends=("rtl",),
    checks=TESTS,
)
NEED_PINS = ("FrontDoor", "SecondMemory")
"""These cannot run on a simulator without VPI: the host port, a memory in Python."""
