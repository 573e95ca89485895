# SPDX-License-Identifier: Apache-2.0
"""Clock gates of a flat netlist become enables: for tools that know only one clock.

CXXRTL evaluates a gated clock a delta cycle later than the clock itself, so that registers behind a
gate would see values from after the edge. A register behind gates changes at an edge exactly when
the inputs of all their latches were high before it: the same register with that enable and the
ungated clock. Reads and writes RTLIL text (the format of Yosys); knows nothing of the NPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from driver.errors import InputError

_CELL = re.compile(r"^  cell (?P<kind>\S+) (?P<name>\S+)\n(?P<body>.*?)^  end\n", re.M | re.S)
_CONNECT = re.compile(r"^    connect \\(?P<port>\w+) (?P<signal>.*)\n", re.M)
_WIDTH = re.compile(r"^    parameter \\WIDTH (\d+)\n", re.M)
_CLOCKED = ("$dff", "$memwr_v2")
_LATCH_LOW = "    parameter \\EN_POLARITY 0\n"


@dataclass(frozen=True)
class _Gate:
    """A latch, transparent while `clock` is low, and an AND with it."""

    clock: str
    enable: str


def ungated(rtlil: str, clock: str) -> str:
    """The netlist with every register on `clock`, and no latch.

    InputError when a latch is not part of a clock gate, or a register has another clock.
    """
    gates = _gates(rtlil)
    enables: dict[str, str] = {}
    added: list[tuple[str, str]] = []
    """Wires, which RTLIL declares first, and the cells that drive them."""

    def enable_of(gated: str) -> str:
        """The signal that is high when an edge of `clock` reaches `gated`."""
        if gated not in enables:
            if gated not in gates:
                raise InputError("rtl", "clock", gated, f"{clock}, or clock gates of it")
            gate = gates[gated]
            inner = gate.enable
            if gate.clock != clock:
                inner = f"$gate_enable${len(enables)}"
                added.append(_and(inner, enable_of(gate.clock), gate.enable))
            enables[gated] = inner
        return enables[gated]

    def rewritten(cell: re.Match[str]) -> str:
        kind, name, body = cell["kind"], cell["name"], cell["body"]
        if kind == "$dlatch":
            return ""
        ports = _ports(body)
        if "CLK" not in ports or kind == "$memrd_v2" or ports["CLK"] == clock:
            return cell[0]
        if kind not in _CLOCKED:
            raise InputError("rtl", name, kind, f"{' or '.join(_CLOCKED)} behind a clock gate")
        enable = enable_of(ports["CLK"])
        body = body.replace(f"connect \\CLK {ports['CLK']}\n", f"connect \\CLK {clock}\n")
        if kind == "$dff":
            body = f"    parameter \\EN_POLARITY 1\n{body}    connect \\EN {enable}\n"
            return f"  cell $dffe {name}\n{body}  end\n"
        held = f"$gated{name}"
        added.append(_held(held, int(_width(body)), ports["EN"], enable))
        body = body.replace(f"connect \\EN {ports['EN']}\n", f"connect \\EN {held}\n")
        return f"  cell {kind} {name}\n{body}  end\n"

    text = _without_attributes_of_latches(rtlil)
    text = _CELL.sub(rewritten, text)
    module = re.search(r"^module .*\n", text, re.M)
    assert module is not None, "RTLIL of one module"
    wires = "".join(wire for wire, _ in added)
    cells = "".join(cell for _, cell in added)
    end = text.rindex("\nend") + 1
    return f"{text[: module.end()]}{wires}{text[module.end() : end]}{cells}{text[end:]}"


def _without_attributes_of_latches(rtlil: str) -> str:
    """An attribute belongs to what follows it: those of a removed cell go too."""
    return re.sub(r"(?:^  attribute .*\n)+(?=  cell \$dlatch )", "", rtlil, flags=re.M)


def _gates(rtlil: str) -> dict[str, _Gate]:
    """Gated clock → its gate. InputError for a latch that is no part of one."""
    latches: dict[str, _Gate] = {}
    ands: list[dict[str, str]] = []
    for cell in _CELL.finditer(rtlil):
        ports = _ports(cell["body"])
        if cell["kind"] == "$dlatch":
            if _LATCH_LOW not in cell["body"]:
                raise InputError("rtl", cell["name"], "a latch", "no latch but a clock gate's")
            latches[ports["Q"]] = _Gate(ports["EN"], ports["D"])
        elif cell["kind"] in ("$and", "$logic_and"):
            ands.append(ports)
    gates: dict[str, _Gate] = {}
    used: set[str] = set()
    for ports in ands:
        for first, second in (("A", "B"), ("B", "A")):
            latch = latches.get(ports[second])
            if latch is not None and latch.clock == ports[first]:
                gates[ports["Y"]] = latch
                used.add(ports[second])
    for held in latches.keys() - used:
        raise InputError("rtl", held, "a latch", "no latch but a clock gate's")
    return gates


def _ports(body: str) -> dict[str, str]:
    return {found["port"]: found["signal"] for found in _CONNECT.finditer(body)}


def _width(body: str) -> str:
    found = _WIDTH.search(body)
    assert found is not None, "a register has a width"
    return found[1]


def _and(output: str, first: str, second: str) -> tuple[str, str]:
    widths = "".join(f"    parameter \\{port}_WIDTH 1\n" for port in "ABY")
    signed = "".join(f"    parameter \\{port}_SIGNED 0\n" for port in "AB")
    connects = f"    connect \\A {first}\n    connect \\B {second}\n    connect \\Y {output}\n"
    return f"  wire {output}\n", f"  cell $and {output}$and\n{widths}{signed}{connects}  end\n"


def _held(output: str, width: int, value: str, enable: str) -> tuple[str, str]:
    """`output` = `value` while `enable`, else 0."""
    connects = f"    connect \\A {width}'0\n    connect \\B {value}\n    connect \\S {enable}\n"
    cell = f"  cell $mux {output}$mux\n    parameter \\WIDTH {width}\n{connects}"
    return f"  wire width {width} {output}\n", f"{cell}    connect \\Y {output}\n  end\n"
