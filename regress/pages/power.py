# SPDX-License-Identifier: Apache-2.0
"""The page of `npu-cosim power`: block × op and clock gate × op as heat maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

from regress.failures.activity import OpActivity
from regress.pages.render import write_page, write_style
from regress.pages.svg import on, picture, tag, text, viridis

_LEFT, _WIDE, _HIGH = 250, 112, 26


def write_power_page(folder: Path, config: str, ops: Sequence[OpActivity]) -> Path:
    """index.html in `folder`, with its style sheet."""
    write_style(folder)
    blocks = sorted({one.block for op in ops for one in op.blocks})
    gates = sorted({one.gate for op in ops for one in op.gates})
    known = [block for block in blocks if block]
    most = max((op.toggles_per_cycle(block) for op in ops for block in known), default=1.0)

    def warm(op: OpActivity, block: str) -> tuple[float, str]:
        value = op.toggles_per_cycle(block)
        return (value / most) ** 0.5 if most else 0.0, f"{value:.1f}"

    def clocked(op: OpActivity, gate: str) -> tuple[float, str]:
        value = _clocked(op, gate)
        return value, f"{value:.0%}"

    return write_page(
        folder / "index.html",
        "power.html.j2",
        root="",
        config=config,
        toggles=_map("register toggles per cycle", ops, blocks, warm),
        clocks=_map("share of cycles with a clock", ops, gates, clocked),
    )


def _clocked(op: OpActivity, gate: str) -> float:
    return next((one.cycles / op.cycles for one in op.gates if one.gate == gate), 0.0)


def _map(
    label: str,
    ops: Sequence[OpActivity],
    rows: Sequence[str],
    value: Callable[[OpActivity, str], tuple[float, str]],
) -> Markup:
    """A cell for each row and op; the darker, the more; empty where nothing moves."""
    content: list[Markup] = []
    for column, op in enumerate(ops):
        x = _LEFT + _WIDE * column + _WIDE / 2
        name = op.op.removeprefix("aten.").replace(".default", "").replace(".dim_IntList", "")
        content.append(text(x, 14, name, text_anchor="middle"))
        content.append(text(x, 30, f"{op.cycles:,} cycles", text_anchor="middle", class_="soft"))
    for row, name in enumerate(rows):
        y = 40 + row * _HIGH
        content.append(text(_LEFT - 8, y + 17, name or "all", text_anchor="end"))
        for column, op in enumerate(ops):
            share, words = value(op, name)
            content.append(_cell(share, words, (_LEFT + _WIDE * column, y), f"{name}, {op.op}"))
    high = 44 + _HIGH * len(rows)
    return picture(
        _LEFT + _WIDE * len(ops) + 4, high, f"{label} of {len(rows)} × {len(ops)}", content
    )


def _cell(share: float, words: str, place: tuple[float, float], what: str) -> Markup:
    title = tag("title", f"{what}: {words}")
    x, y = place
    if not share:
        size = {"width": _WIDE - 2, "height": _HIGH - 2}
        return tag("rect", title, x=x + 1, y=y + 1, **size, fill="none", class_="grid-line")
    colour = viridis(share)
    box = tag("rect", title, x=x + 1, y=y + 1, width=_WIDE - 2, height=_HIGH - 2, fill=colour)
    ink = {"style": f"fill:{on(colour)}", "text_anchor": "middle"}
    return tag("g", box, text(x + _WIDE / 2, y + 17, words, **ink))
