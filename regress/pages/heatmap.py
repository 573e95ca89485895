# SPDX-License-Identifier: Apache-2.0
"""Ops × configurations as a picture: what was tried where, what failed, how busy the array was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from driver.results import OpRow
from regress.pages.svg import on, picture, tag, text, viridis
from regress.results.night import StoredJob


@dataclass(frozen=True)
class HeatmapCell:
    """An op on a configuration: how often it passed and failed, and how well it used the array."""

    passed: int
    failed: int
    utilisation: float | None


def heat_map(
    ops: Sequence[str], configs: Sequence[str], cells: Mapping[tuple[str, str], HeatmapCell]
) -> Markup:
    """Utilisation as colour, failures as a cross and a number; white was not tried."""
    wide, high, left = 132, 30, 210
    content: list[Markup] = [
        text(left + wide * i + wide / 2, 14, name, text_anchor="middle")
        for i, name in enumerate(configs)
    ]
    for row, op in enumerate(ops):
        y = 24 + row * high
        content.append(text(left - 8, y + 19, op, text_anchor="end"))
        for column, config in enumerate(configs):
            content.append(_heat(cells.get((op, config)), left + wide * column, y, (wide, high)))
    failed = sum(cell.failed > 0 for cell in cells.values())
    label = f"{len(cells)} of {len(ops) * len(configs)} cells tried, {failed} with failures"
    return picture(left + wide * len(configs) + 4, 28 + high * len(ops), label, content)


def _heat(cell: HeatmapCell | None, x: float, y: float, size: tuple[float, float]) -> Markup:
    frame = {"x": x + 1, "y": y + 1, "width": size[0] - 2, "height": size[1] - 2}
    if cell is None:
        title = tag("title", "not tried")
        return tag("rect", title, **frame, fill="none", class_="grid-line")
    share = cell.utilisation
    colour = "#8a93a0" if share is None else viridis(share)
    use = "" if share is None else f" {share:.0%}"
    words = f"✗ {cell.failed} of {cell.passed + cell.failed}" if cell.failed else f"✓{use}"
    title = tag("title", f"{cell.passed} passed, {cell.failed} failed, utilisation{use or ' –'}")
    ring = {"stroke": "var(--ring)", "stroke_width": 3} if cell.failed else {}
    ink = {"style": f"fill:{on(colour)}", "text_anchor": "middle"}
    label = text(x + size[0] / 2, y + size[1] / 2 + 4, words, **ink)
    return tag("g", title, tag("rect", **frame, fill=colour, **ring), label)


def cells(rows: Iterable[tuple[StoredJob, OpRow]]) -> dict[tuple[str, str], HeatmapCell]:
    """What ran on the NPU, by op with its type and by configuration."""
    groups: dict[tuple[str, str], list[OpRow]] = {}
    for job, row in rows:
        if row.where != "cpu":
            groups.setdefault((f"{row.op} {row.dtype}", job.item.config), []).append(row)
    return {key: _cell(found) for key, found in groups.items()}


def _cell(rows: Sequence[OpRow]) -> HeatmapCell:
    """Utilisation over all cycles of the group: large ops count more."""
    failed = sum(row.status == "fail" for row in rows)
    timed = [row for row in rows if row.cycles and row.utilisation is not None]
    cycles = sum(row.cycles or 0 for row in timed)
    used = sum((row.utilisation or 0.0) * (row.cycles or 0) for row in timed)
    return HeatmapCell(len(rows) - failed, failed, used / cycles if cycles else None)
