# SPDX-License-Identifier: Apache-2.0
"""The key signals around what went wrong, as a strip of waves that a page can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from regress.failures.wavefile import SignalTrace, WaveFile
from regress.pages.svg import line, picture, tag, text

_CYCLES = 120
"""Shown at most."""
_AFTER = 12
"""Cycles after the last marker."""
_LEFT, _TOP, _RIGHT = 130, 76, 20
_LABEL = 15
_ROW, _HIGH = 26, 16
_PLOT = 960
_CHARACTER = 7.2
_CORE = "tb_top.u_npu.u_core."
_READ_PINS = ("arvalid", "araddr", "rvalid", "rdata", "rlast")
_WRITE_PINS = ("awvalid", "awaddr", "wvalid", "wdata", "wlast")
_STATES = {0: "IDLE", 1: "BUSY", 2: "DONE", 3: "ERROR"}


@dataclass(frozen=True)
class StripSignal:
    """A line of the strip."""

    label: str
    path: str
    names: Mapping[int, str] | None = None


SIGNALS = (
    StripSignal("queue state", f"{_CORE}u_ctrl.status.state", _STATES),
    StripSignal("command step", f"{_CORE}u_ctrl.u_cmd_front.u_cmd_issue.state_q"),
    StripSignal("matrix start", f"{_CORE}u_matrix.start"),
    StripSignal("matrix done", f"{_CORE}u_matrix.rsp_o.done"),
    *(StripSignal(name, f"tb_top.m_axi_{name}") for name in _READ_PINS),
    *(StripSignal(name, f"tb_top.m_axi_{name}") for name in _WRITE_PINS),
    StripSignal("irq", "tb_top.irq"),
)
"""Present in every configuration; one that a file lacks is left out and named below the strip."""


@dataclass(frozen=True)
class _Span:
    first: int
    last: int

    def x(self, cycle: float) -> float:
        return _LEFT + (cycle - self.first) / (self.last - self.first + 1) * _PLOT


def draw_strip(file: WaveFile, markers: Mapping[str, int]) -> Markup:
    """The strip; it ends soon after the last marker."""
    traces = [(shown, file.trace(shown.path)) for shown in SIGNALS]
    present = [(shown, trace) for shown, trace in traces if trace is not None]
    missing = [shown.label for shown, trace in traces if trace is None]
    span = _span(markers)
    height = _TOP + len(present) * _ROW + 24
    label = f"Signals in cycles {span.first} to {span.last}"
    content: list[Markup] = [*_ruler(span, height)]
    for number, (shown, trace) in enumerate(present):
        y = _TOP + number * _ROW
        content.append(text(_LEFT - 10, y + _HIGH - 3, shown.label, text_anchor="end"))
        draw = _bit if trace.width == 1 else _bus
        content += draw(trace, shown, span, y)
    content += _marks(markers, span, height)
    if missing:
        note = f"not in these waves: {', '.join(missing)}"
        content.append(text(_LEFT, height - 4, note, class_="note"))
    return picture(_LEFT + _PLOT + _RIGHT, height, label, content)


def _span(markers: Mapping[str, int]) -> _Span:
    last = max(markers.values(), default=_CYCLES) + _AFTER
    first = max(min(markers.values(), default=0) - _AFTER, last - _CYCLES, 0)
    return _Span(first, last)


def _ruler(span: _Span, height: float) -> Iterator[Markup]:
    step = max(10 * round((span.last - span.first) / 100), 5)
    for cycle in range(-(-span.first // step) * step, span.last + 1, step):
        x = span.x(cycle)
        yield line((x, _TOP - 8), (x, height - 18), class_="grid-line", stroke="#d5dae1")
        yield text(x, _TOP - 14, f"{cycle:,}", text_anchor="middle", class_="note")


def _marks(markers: Mapping[str, int], span: _Span, height: float) -> Iterator[Markup]:
    """A dashed line per marker; one before the span is named at its left edge."""
    for number, (name, cycle) in enumerate(markers.items()):
        inside = cycle >= span.first
        x = span.x(cycle + 0.5) if inside else _LEFT
        y = _LABEL * (number + 1)
        words = f"{'' if inside else '◂ '}{chr(65 + number)} {name}, cycle {cycle:,}"
        if inside:
            paint = {"class_": "marker", "stroke": "#d00000", "stroke_dasharray": "5 3"}
            yield line((x, y - 10), (x, height - 18), **paint, stroke_width=1.6)
        late = x > _LEFT + 0.7 * _PLOT
        side = {"text_anchor": "end"} if late else {}
        yield text(x + (-4 if late else 4), y, words, **side)


def _runs(trace: SignalTrace, span: _Span) -> Iterator[tuple[int, int, int | None]]:
    """(first cycle, end, value) of the stretches in the span."""
    start, value = span.first, trace.before_edge(span.first)
    for cycle in range(span.first + 1, span.last + 1):
        now = trace.before_edge(cycle)
        if now != value:
            yield start, cycle, value
            start, value = cycle, now
    yield start, span.last + 1, value


def _bit(trace: SignalTrace, _shown: StripSignal, span: _Span, y: float) -> Iterator[Markup]:
    corners = []
    for start, end, value in _runs(trace, span):
        level = y + (0 if value else _HIGH)
        corners += [f"{span.x(start):.1f},{level:.1f}", f"{span.x(end):.1f},{level:.1f}"]
    yield tag("polyline", points=" ".join(corners), class_="wave", fill="none", stroke="#1b1f27")


def _bus(trace: SignalTrace, shown: StripSignal, span: _Span, y: float) -> Iterator[Markup]:
    for start, end, value in _runs(trace, span):
        x, width = span.x(start), span.x(end) - span.x(start)
        words = _value(shown, value)
        title = tag("title", f"{shown.label} {words}, cycles {start} to {end - 1}")
        frame = {"x": x, "y": y, "width": width, "height": _HIGH, "class_": "bus"}
        yield tag("rect", title, **frame, fill="#f4f6f9", stroke="#1b1f27")
        if len(words) * _CHARACTER + 6 <= width:
            yield text(x + 4, y + _HIGH - 4, words)


def _value(shown: StripSignal, value: int | None) -> str:
    if value is None:
        return "?"
    names = shown.names or {}
    return names.get(value, f"{value:x}")
