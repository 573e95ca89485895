# SPDX-License-Identifier: Apache-2.0
"""What moves in a file of waves: toggles of registers by module, and the clocks of the gates.

A register is a signal whose name ends in _q, or a field of it: not those of the generated register
block. Of a memory, the words that the simulator traces count. Knows the RTL's naming and its clock
gate, nothing else of the design.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driver.errors import InputError
from driver.frozen import Frozen
from regress.failures.wavefile import PERIOD_PS, SignalTrace, WaveFile

ROOT = "tb_top.u_npu.u_core"
CLOCK = f"{ROOT}.clk_i"
_REGISTER = re.compile(r"_q(\[\d+\])*$")
_GATE_CLOCK = ".clk_o"
_CHECKER = "_checker"
"""Ends the names of what tb/hdl binds into the design."""
_DEPTH = 2
"""Levels of instances below ROOT that are told apart."""


class BlockActivity(Frozen):
    """The registers of one module and of what is in it."""

    block: str
    bits: int
    toggles: int
    """Changes of single bits, over the whole op."""


class GateActivity(Frozen):
    """A clock gate: in how many cycles its clock ran."""

    gate: str
    cycles: int


class OpActivity(Frozen):
    """One op. `cycles` are those that were recorded."""

    op: str
    cycles: int
    blocks: tuple[BlockActivity, ...]
    gates: tuple[GateActivity, ...]

    def toggles_per_cycle(self, block: str) -> float:
        """Of the block's registers."""
        return next((one.toggles / self.cycles for one in self.blocks if one.block == block), 0.0)


@dataclass
class _Sum:
    bits: int = 0
    toggles: int = 0


def activity(path: Path, op: str) -> OpActivity:
    """Of the waves in `path`. InputError for a file without the clock or without registers."""
    file = WaveFile(path)
    clock = file.trace(CLOCK)
    cycles = 0 if clock is None else rising_edges(clock)
    if not cycles:
        raise InputError(path, CLOCK, "no rising edge", "waves of the whole design")
    sums: dict[str, _Sum] = defaultdict(_Sum)
    gates: list[GateActivity] = []
    for names in file.signals():
        register = next((name for name in names if register_block(name) is not None), None)
        if register is not None:
            _count(file, register, sums)
        gate = next((name for name in names if _is_gate(name)), None)
        if gate is not None:
            where = gate.removeprefix(f"{ROOT}.").removesuffix(_GATE_CLOCK)
            gates.append(GateActivity(gate=where, cycles=rising_edges(_trace(file, gate))))
    if not sums:
        raise InputError(path, "registers", "none", "waves with the signals of the design")
    blocks = (
        BlockActivity(block=block, bits=found.bits, toggles=found.toggles)
        for block, found in sorted(sums.items())
    )
    return OpActivity(
        op=op,
        cycles=cycles,
        blocks=tuple(blocks),
        gates=tuple(sorted(gates, key=lambda one: one.gate)),
    )


def _count(file: WaveFile, register: str, sums: dict[str, _Sum]) -> None:
    trace = _trace(file, register)
    changed = toggles(trace)
    for block in _above(register_block(register) or ""):
        sums[block].bits += trace.width
        sums[block].toggles += changed


def _trace(file: WaveFile, name: str) -> SignalTrace:
    trace = file.trace(name)
    assert trace is not None, "the file has this name"
    return trace


def _is_gate(name: str) -> bool:
    return name.startswith(ROOT) and name.endswith(_GATE_CLOCK) and "gate" in name.split(".")[-2]


def register_block(name: str) -> str | None:
    """Path below ROOT of the module whose register `name` is; None for what is no register, and for
    one of a checker."""
    if not name.startswith(f"{ROOT}."):
        return None
    parts = name.removeprefix(f"{ROOT}.").split(".")
    if any(part.endswith(_CHECKER) for part in parts):
        return None
    for number, part in enumerate(parts):
        if _REGISTER.search(part) and not (number and parts[number - 1].endswith("_gate")):
            return ".".join(parts[:number])
    return None


def _above(block: str) -> Iterator[str]:
    """The whole, and each level down to _DEPTH. A generate block belongs to its instance."""
    yield ""
    instances = [part for part in block.split(".") if part.startswith("u_")]
    for depth in range(1, min(len(instances), _DEPTH) + 1):
        yield ".".join(instances[:depth])


def toggles(trace: SignalTrace) -> int:
    """Changes of single bits after the first value."""
    pairs = zip(trace.values, trace.values[1:], strict=False)
    return sum((before ^ after).bit_count() for before, after in pairs)


def rising_edges(trace: SignalTrace) -> int:
    """Changes from 0 to 1; at most one in each period."""
    pairs = zip(trace.values, trace.values[1:], strict=False)
    found = sum(before == 0 and after == 1 for before, after in pairs)
    span = int(np.ptp(trace.times)) if trace.times.size else 0
    return min(found, span // PERIOD_PS + 1)
