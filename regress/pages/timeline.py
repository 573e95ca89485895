# SPDX-License-Identifier: Apache-2.0
"""The ops of a job in time: as a picture, and as a trace for Perfetto or chrome://tracing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from driver.results import OpRow, RunResult
from regress.pages.svg import SERIES, line, on, picture, tag, text
from regress.results.night import sizes_of

_LANE, _LANE_GAP = 26, 6
_WIDTH = 960
_LEFT = 190
_NAMED_WIDTH = 60
"""A bar is named when it is that wide."""
_TICKS = 4
_NS_PER_CYCLE = 2


def timeline(rows: Sequence[OpRow]) -> Markup:
    """The ops of a job one after the other, each as long as its cycles; the longest are named."""
    timed = [row for row in rows if row.cycles]
    total = sum(row.cycles or 0 for row in timed) or 1
    kinds = list(dict.fromkeys(row.op for row in timed))
    height = 30 + len(kinds) * (_LANE + _LANE_GAP)
    scale = _WIDTH / total
    content: list[Markup] = []
    for lane, kind in enumerate(kinds):
        y = 24 + lane * (_LANE + _LANE_GAP)
        content.append(text(_LEFT - 8, y + 17, kind, text_anchor="end"))
        content.append(line((_LEFT, y + _LANE), (_LEFT + _WIDTH, y + _LANE), class_="grid-line"))
    start = 0
    for row in timed:
        content.append(_bar(row, start, scale, kinds.index(row.op)))
        start += row.cycles or 0
    content += _cycle_ruler(total)
    label = f"{len(timed)} ops in {total:,} cycles"
    return picture(_LEFT + _WIDTH + 8, height, label, content)


def _bar(row: OpRow, start: int, scale: float, lane: int) -> Markup:
    x, width = _LEFT + start * scale, max((row.cycles or 0) * scale, 0.6)
    y = 24 + lane * (_LANE + _LANE_GAP)
    colour = SERIES[lane % len(SERIES)]
    title = tag("title", f"op {row.index} {row.module}: {row.cycles:,} cycles from {start:,}")
    ring = {"stroke": "var(--ring)", "stroke_width": 2} if row.status == "fail" else {}
    bar = tag("rect", x=x, y=y, width=width, height=_LANE - 1, fill=colour, **ring)
    if width < _NAMED_WIDTH:
        return tag("g", title, bar)
    name = row.module.rpartition(":")[2].rpartition(".")[2] or str(row.index)
    shown = name[: int(width // 7)]
    return tag("g", title, bar, text(x + 4, y + 17, shown, style=f"fill:{on(colour)}"))


def _cycle_ruler(total: int) -> Iterator[Markup]:
    step = 10 ** math.floor(math.log10(total)) if total > 1 else 1
    while total / step < _TICKS:
        step = max(step // 2, 1)
    for cycle in range(0, total + 1, step):
        x = _LEFT + cycle / total * _WIDTH
        yield text(x, 12, f"{cycle:,}", text_anchor="middle" if cycle else "start", class_="note")


def perfetto(result: RunResult) -> str:
    """The trace: one slice per op, one track per kind of op; a cycle is 2 ns."""
    kinds = list(dict.fromkeys(row.op for row in result.ops if row.cycles))
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"npu {result.config}"}},
        *(
            {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": kind}}
            for tid, kind in enumerate(kinds, start=1)
        ),
    ]
    start = 0
    for row in result.ops:
        if row.cycles:
            events.append(_slice(row, start, kinds.index(row.op) + 1))
            start += row.cycles
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, ensure_ascii=False) + "\n"


def _slice(row: OpRow, start: int, tid: int) -> dict[str, object]:
    known = {"index": row.index, "dtype": row.dtype, "shapes": sizes_of(row), "cycles": row.cycles}
    known |= {"macs": row.macs, "utilisation": row.utilisation, "status": row.status}
    return {
        "ph": "X",
        "pid": 1,
        "tid": tid,
        "name": row.module.rpartition(":")[2] or row.op,
        "cat": row.op,
        "ts": start * _NS_PER_CYCLE / 1000,
        "dur": (row.cycles or 0) * _NS_PER_CYCLE / 1000,
        "args": known,
    }
