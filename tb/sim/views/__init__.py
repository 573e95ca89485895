# SPDX-License-Identifier: Apache-2.0
"""What one wants to see first in a waveform, as a table, and the two viewers' files made of it.

`npu.gtkw` (gtkwave waves.vcd npu.gtkw) and `npu.sucl` (surfer -c npu.sucl waves.vcd) are committed;
`python -m tb.sim.views` writes them anew. The data pins have the default width;
regress/failures/waves.py puts in the width of a recording.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_CORE = "tb_top.u_npu.u_core"
_CTRL = f"{_CORE}.u_ctrl"
DATA_BITS = 256
"""Width of m_axi's data in the committed views."""
_HEX, _BINARY, _DECIMAL = "22", "28", "24"
_GROUP_BEGIN, _GROUP_END = "800200", "1000200"


@dataclass(frozen=True)
class Signal:
    """`path` as the trace names it, with `width` bits, shown as `label`."""

    label: str
    path: str
    width: int = 1
    decimal: bool = False


def _packet() -> tuple[Signal, ...]:
    fields = [("opcode", 32), ("flags", 32), ("src1", 64), ("src2", 64), ("dst", 64)]
    fields += [(f"param[{index}]", 32) for index in range(8)]
    return tuple(
        Signal(name, f"{_CTRL}.u_cmd_front.packet.{name}", width) for name, width in fields
    )


def _channel(name: str) -> tuple[Signal, ...]:
    """An address channel of m_axi with its data and response handshakes."""
    pin = "tb_top.m_axi_"
    address = (("addr", 64), ("len", 8), ("id", 8), ("valid", 1), ("ready", 1))
    signals = [Signal(f"{name}{part}", f"{pin}{name}{part}", width) for part, width in address]
    data = ("rvalid", "rready", "rlast") if name == "ar" else ("wvalid", "wready", "wlast")
    signals += [Signal(part, f"{pin}{part}") for part in data]
    moved = "rdata" if name == "ar" else "wdata"
    signals.append(Signal(moved, f"{pin}{moved}", DATA_BITS))
    response = "rresp" if name == "ar" else "bresp"
    return (*signals, Signal(response, f"{pin}{response}", 2))


GROUPS: dict[str, tuple[Signal, ...]] = {
    "clock": (
        Signal("clk", "tb_top.clk"),
        Signal("rst_n", "tb_top.rst_n"),
        Signal("irq", "tb_top.irq"),
        Signal("cycle", f"{_CTRL}.cycle", 64, decimal=True),
    ),
    "state": (
        Signal("queue: 0 IDLE 1 BUSY 2 DONE 3 ERROR", f"{_CTRL}.status.state", 2),
        Signal("error code", f"{_CTRL}.status.error_code", 4),
        Signal("error sequence", f"{_CTRL}.status.error_seq", 32, decimal=True),
        Signal("completed", f"{_CTRL}.status.completed[0]", 32, decimal=True),
        Signal("command step", f"{_CTRL}.u_cmd_front.u_cmd_issue.state_q", 3),
        Signal("operand step", f"{_CTRL}.u_cmd_front.u_cmd_check.u_operand_resolve.state_q", 4),
    ),
    "packet": (Signal("sequence", f"{_CTRL}.next_seq[0]", 32, decimal=True), *_packet()),
    "engines": (
        Signal("matrix start", f"{_CORE}.u_matrix.start"),
        Signal("matrix done", f"{_CORE}.u_matrix.rsp_o.done"),
        Signal("vector start", f"{_CORE}.u_vector.start"),
        Signal("vector done", f"{_CORE}.u_vector.rsp_o.done"),
        Signal("gather start", f"{_CORE}.u_gather.start"),
        Signal("gather done", f"{_CORE}.u_gather.rsp_o.done"),
        Signal("copy start", f"{_CORE}.u_copy.start"),
        Signal("copy done", f"{_CORE}.u_copy.rsp_o.done"),
        Signal("second copy start", f"{_CORE}.u_copy1.start"),
        Signal("second copy done", f"{_CORE}.u_copy1.rsp_o.done"),
        Signal("operand checked", f"{_CTRL}.u_cmd_front.u_cmd_check.span_valid_o"),
        Signal("operand is written", f"{_CTRL}.u_cmd_front.u_cmd_check.span_o.write"),
        Signal("operand first byte", f"{_CTRL}.u_cmd_front.u_cmd_check.span_o.first", 64),
        Signal("operand last byte", f"{_CTRL}.u_cmd_front.u_cmd_check.span_o.last", 64),
    ),
    "m_axi reads": _channel("ar"),
    "m_axi writes": _channel("aw"),
}


def _range(signal: Signal) -> str:
    return f"[{signal.width - 1}:0]" if signal.width > 1 else ""


def gtkwave() -> str:
    """The save file."""
    lines = ["[*] written by python -m tb.sim.views", "[timestart] 0"]
    for name, signals in GROUPS.items():
        lines += [f"@{_GROUP_BEGIN}", f"-{name}"]
        for signal in signals:
            wide = _DECIMAL if signal.decimal else _HEX
            lines.append(f"@{wide if signal.width > 1 else _BINARY}")
            lines.append(f"+{{{signal.label}}} {signal.path}{_range(signal)}")
        lines += [f"@{_GROUP_END}", f"-{name}"]
    return "\n".join(lines) + "\n"


def surfer() -> str:
    """The command file. Surfer shows paths, so that labels are needed for groups only."""
    lines: list[str] = []
    for name, signals in GROUPS.items():
        lines.append(f"divider_add {name}")
        lines += [f"variable_add {signal.path}" for signal in signals]
    return "\n".join([*lines, "zoom_fit"]) + "\n"


FILES = {"npu.gtkw": gtkwave, "npu.sucl": surfer}
