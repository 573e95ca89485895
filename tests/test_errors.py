# SPDX-License-Identifier: Apache-2.0
"""Typed errors: one line each, the exit code of their kind, and a way between processes."""

from __future__ import annotations

import pickle

import pytest

from driver.errors import (
    AddressError,
    AssertionFailed,
    DeviceFault,
    DeviceHung,
    InfrastructureError,
    InputError,
    NeverSettles,
    NpuError,
    OutOfMemory,
    ProcessRefused,
    RegisterError,
    SimulatorDied,
    SimulatorTimeout,
    Standstill,
    SubmittedCommand,
    UnsupportedOp,
    VerdictError,
)
from driver.isa import ErrorCode, Packet

EXAMPLES: list[tuple[NpuError, int, str]] = [
    (InputError("a.yaml", "x.y", 3, "at most 2"), 2, "a.yaml: x.y: got 3, expected at most 2"),
    (InputError("a.yaml", "x", " ", "a name"), 2, "a.yaml: x: got an empty text, expected a name"),
    (
        OutOfMemory("weights", 300, 64, 192, 128),
        2,
        "device memory: weights: got 300 bytes to allocate, "
        "expected at most 128 (largest hole; 64 bytes used, 192 free)",
    ),
    (ProcessRefused("a.sv: line 3: wrong"), 2, "a.sv: line 3: wrong"),
    (UnsupportedOp("aten.mm", "dtype", "x", "y"), 2, "aten.mm: dtype: got x, expected y"),
    (AddressError(0x40, 8, "memory"), 2, "address 0x40, 8 bytes: expected memory"),
    (RegisterError(0x2C, "a register"), 2, "register 0x02c: expected a register"),
    (VerdictError("3 elements differ"), 1, "3 elements differ"),
    (
        DeviceFault(ErrorCode.BAD_OPCODE, 7),
        1,
        "device fault BAD_OPCODE (opcode unknown or reserved) in command 7",
    ),
    (
        DeviceHung("no interrupt", Standstill(900, 70, ("m_axi: 2 reads open",), "BUSY", 3)),
        1,
        "device hung at cycle 900: no interrupt; nothing transferred for 70 cycles; "
        "state BUSY, 3 commands completed; m_axi: 2 reads open",
    ),
    (
        DeviceHung("register 0x014: silent", Standstill(5), SubmittedCommand(7, 1, 4, Packet(0))),
        1,
        f"device hung at cycle 5: register 0x014: silent in command 7 (packet 1 of 4, {Packet(0)})",
    ),
    (
        AssertionFailed(("a.sv", 3), "tb_top.u_a.Rule", "wrong", 42, "out/sim.log"),
        1,
        "assertion tb_top.u_a.Rule (a.sv:3) failed in cycle 42: wrong; see out/sim.log",
    ),
    (
        NeverSettles("out/sim.log"),
        1,
        "the RTL has a loop of combinational logic that never settles: `make lint` with its CONFIG "
        "names the nets; see out/sim.log",
    ),
    (InfrastructureError("broken"), 3, "broken"),
    (SimulatorDied("signal 9"), 3, "signal 9"),
    (SimulatorTimeout("after 2 s"), 3, "after 2 s"),
]


@pytest.mark.parametrize(("error", "exit_code", "text"), EXAMPLES)
def test_text_and_exit_code(error: NpuError, exit_code: int, text: str) -> None:
    assert str(error) == text
    assert error.exit_code == exit_code


@pytest.mark.parametrize(("error", "exit_code", "text"), EXAMPLES)
def test_errors_survive_the_way_between_processes(
    error: NpuError, exit_code: int, text: str
) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    assert type(copy) is type(error)
    assert str(copy) == text
    assert vars(copy) == vars(error)


def test_long_and_broken_values_stay_one_short_line() -> None:
    text = str(InputError("f", "field", "a\nb " + "x" * 1000, "two\nlines"))
    assert text.startswith("f: field: got a b xxx")
    assert text.endswith("xxx, expected two lines")
    assert "xxx…xxx" in text
    assert len(text) < 200


def test_a_fault_shows_its_packet() -> None:
    text = str(DeviceFault(ErrorCode.MISALIGNED, 1, Packet(8, dst=2)))
    assert "in command 1: Packet(opcode=8" in text
