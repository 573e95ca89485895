# SPDX-License-Identifier: Apache-2.0
"""The page of `npu-cosim synth`: blocks as bars, figures as a table, longest paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from driver.synthesis import (
    FIGURES,
    FPGA_FIGURES,
    BlockCost,
    FpgaCost,
    FpgaFigure,
    FpgaMapping,
    SynthesisReport,
)
from regress.pages.render import write_page, write_style
from regress.pages.svg import SERIES, on, picture, tag, text

_BARS = (
    ("cells", "cells"),
    ("flip_flops", "flip-flops"),
    ("memory_bits", "memory bits"),
    ("dsp", "18×18 multipliers"),
)
_FPGA_BARS: tuple[tuple[FpgaFigure, str], ...] = (
    ("luts", "LUT4"),
    ("flip_flops", "flip-flops"),
    ("block_rams", "block RAMs"),
    ("multipliers", "18×18 multipliers"),
)
_MODULES = 12
"""Shown of the modules on an FPGA."""
_LEFT, _WIDTH, _HIGH, _GAP = 150, 640, 34, 10
_NAMED_FROM = 46
"""A part of a bar that is narrower has its name only in its tooltip."""


def write_synthesis_page(folder: Path, reports: Sequence[SynthesisReport]) -> Path:
    """index.html in `folder`, with its style sheet."""
    write_style(folder)
    shown = [
        {
            "report": one,
            "picture": shares(one),
            "blocks": list(_rows(one)),
            "fpga": fpga_shares(one.config, one.fpga) if one.fpga is not None else None,
            "mapped": list(_fpga_rows(one.fpga)) if one.fpga is not None else [],
            "modules": list(_module_rows(one.fpga)) if one.fpga is not None else [],
        }
        for one in reports
    ]
    return write_page(
        folder / "index.html", "synthesis.html.j2", root="", shown=shown, figures=FIGURES
    )


def parts(report: SynthesisReport) -> list[BlockCost]:
    """The blocks that are directly in npu_core, largest first."""
    found = [one for one in report.blocks if one.block.count(".") == 1 and one.cells > 8]
    return sorted(found, key=lambda one: -one.cells)


def shares(report: SynthesisReport) -> Markup:
    """A bar for each figure: which block has how much of it."""
    wholes = {figure: getattr(report.blocks[0], figure) for figure, _ in _BARS}
    return _bars(report.config, parts(report), _BARS, wholes)


def fpga_shares(config: str, mapping: FpgaMapping) -> Markup:
    """The same for what was mapped to an FPGA; the whole is the sum of the blocks that were."""
    blocks = sorted((one for one in mapping.blocks if one.block), key=lambda one: -one.luts)
    wholes: dict[str, int] = {
        name: sum(getattr(one, name) for one in blocks) for name, _ in _FPGA_BARS
    }
    return _bars(f"{config} on {mapping.device}", blocks, _FPGA_BARS, wholes)


def _bars(
    config: str,
    blocks: Sequence[BlockCost | FpgaCost],
    figures: Sequence[tuple[str, str]],
    wholes: Mapping[str, int],
) -> Markup:
    content: list[Markup] = []
    for row, (figure, name) in enumerate(figures):
        y = row * (_HIGH + _GAP) + 4
        whole = wholes[figure]
        content.append(text(_LEFT - 10, y + 15, name, text_anchor="end"))
        content.append(text(_LEFT - 10, y + 30, f"{whole:,}", text_anchor="end", class_="soft"))
        x = float(_LEFT)
        for number, block in enumerate(blocks):
            value = getattr(block, figure)
            wide = _WIDTH * value / whole if whole else 0.0
            content.append(_part(block, value, whole, (x, y, wide), SERIES[number % len(SERIES)]))
            x += wide
    high = len(figures) * (_HIGH + _GAP)
    label = f"{config}: shares of {', '.join(one.block for one in blocks)}"
    return picture(_LEFT + _WIDTH + 4, high, label, content)


def _part(
    block: BlockCost | FpgaCost,
    value: int,
    whole: int,
    place: tuple[float, float, float],
    colour: str,
) -> Markup:
    x, y, wide = place
    name = block.block.rpartition(".")[2].removeprefix("u_")
    title = tag("title", f"{name}: {value:,}, {value / whole:.1%}" if whole else name)
    box = tag("rect", title, x=x, y=y, width=max(wide - 1, 0.0), height=_HIGH, fill=colour)
    if wide < _NAMED_FROM:
        return box
    ink = {"style": f"fill:{on(colour)}", "text_anchor": "middle"}
    return tag("g", box, text(x + wide / 2, y + _HIGH / 2 + 4, name, **ink))


def _rows(report: SynthesisReport) -> list[tuple[str, list[int]]]:
    """Indented name and figures of every block that is worth a line."""
    rows = []
    for block in report.blocks:
        if block.block == "u_core" or not (block.cells > 8 or block.memory_bits):
            continue
        indent = "\u2003" * block.block.count(".")
        name = block.block.rpartition(".")[2] or "npu_top"
        rows.append((indent + name, [getattr(block, figure) for figure in FIGURES]))
    return rows


def _fpga_rows(mapping: FpgaMapping) -> Iterator[tuple[str, list[int]]]:
    """Name and figures of every block that was mapped."""
    for one in mapping.blocks:
        name = one.block.rpartition(".")[2] or "npu_top"
        yield name, [getattr(one, figure) for figure in FPGA_FIGURES]


def _module_rows(mapping: FpgaMapping) -> Iterator[tuple[str, list[int]]]:
    """The modules that take most: name, instances, and figures of all of them together."""
    for one in mapping.modules[:_MODULES]:
        figures = [getattr(one.cost, figure) for figure in FPGA_FIGURES]
        yield one.cost.block, [one.instances, *figures]
