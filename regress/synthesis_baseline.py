# SPDX-License-Identifier: Apache-2.0
"""The recorded figures of `npu-cosim synth`: they move only when someone says so.

Owns regress/synthesis_baseline.json: the blocks that are directly in npu_core, by configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from driver.files import read_json
from driver.frozen import Frozen
from driver.results import write_json
from driver.synthesis import FIGURES, FPGA_FIGURES, BlockCost, FpgaCost, SynthesisReport
from regress.paths import ROOT

FILE = ROOT / "regress" / "synthesis_baseline.json"
TOLERANCE = 0.02
"""A figure may differ by so much; a block may not come or go."""


class SynthesisReports(Frozen):
    """Reports of several configurations."""

    reports: tuple[SynthesisReport, ...]


class SynthesisBaseline(Frozen):
    """Configuration → its blocks, the whole first, and its blocks on an FPGA, if they were mapped
    without a hole."""

    blocks: dict[str, tuple[BlockCost, ...]]
    fpga: dict[str, tuple[FpgaCost, ...]] = Field(default_factory=dict)


def recorded(file: Path = FILE) -> SynthesisBaseline | None:
    """The baseline on file; None without one."""
    return read_json(file, SynthesisBaseline) if file.exists() else None


def kept(report: SynthesisReport) -> tuple[BlockCost, ...]:
    """The blocks that are compared."""
    found = (one for one in report.blocks if one.block != "u_core" and one.block.count(".") <= 1)
    return tuple(one for one in found if one.cells > 8 or one.memory_bits)


def moved(former: SynthesisBaseline | None, reports: Sequence[SynthesisReport]) -> list[str]:
    """A line for each figure that has left its baseline. A configuration without one is a line."""
    lines: list[str] = []
    for report in reports:
        if former is None or report.config not in former.blocks:
            lines.append(f"{report.config}: no baseline is recorded")
            continue
        lines += _blocks_moved(report.config, former.blocks[report.config], kept(report), FIGURES)
        lines += _fpga_moved(former, report)
    return lines


def without_fpga(former: SynthesisBaseline | None, reports: Sequence[SynthesisReport]) -> list[str]:
    """A line for each configuration that was mapped and has nothing to be compared with."""
    known = former.fpga if former is not None else {}
    return [
        f"{one.config}: on {one.fpga.device} nothing is compared, since no baseline is recorded; "
        f"make synth CONFIG={one.config} FPGA=1 RECORD=1 records one"
        for one in reports
        if one.fpga is not None and one.config not in known
    ]


def _fpga_moved(former: SynthesisBaseline, report: SynthesisReport) -> Iterator[str]:
    if report.fpga is None or report.config not in former.fpga:
        return
    before, now = former.fpga[report.config], report.fpga.blocks
    yield from _blocks_moved(f"{report.config} on {report.fpga.device}", before, now, FPGA_FIGURES)


def _blocks_moved(
    config: str,
    before: Sequence[BlockCost | FpgaCost],
    now: Sequence[BlockCost | FpgaCost],
    figures: Sequence[str],
) -> Iterator[str]:
    old, new = ({one.block: one for one in blocks} for blocks in (before, now))
    for block in sorted(old.keys() ^ new.keys()):
        yield f"{config} {block}: {'new' if block in new else 'gone'}"
    for block in sorted(old.keys() & new.keys()):
        for figure in figures:
            was, is_now = getattr(old[block], figure), getattr(new[block], figure)
            if abs(is_now - was) > TOLERANCE * was:
                yield f"{config} {block or 'npu_top'}: {figure} {is_now:,}, recorded {was:,}"


def holes(report: SynthesisReport) -> list[str]:
    """A line for each block whose mapping is not whole, so that it cannot be recorded."""
    missing = () if report.fpga is None else report.fpga.unmapped
    return [
        f"{report.config} {one.block or 'npu_top'}: not mapped, not recorded" for one in missing
    ]


def record(reports: Sequence[SynthesisReport], file: Path = FILE) -> None:
    """Write the figures of these configurations; the others stay."""
    former = recorded(file) or SynthesisBaseline(blocks={})
    blocks = {**former.blocks, **{one.config: kept(one) for one in reports}}
    mapped = {one.config: one.fpga.blocks for one in reports if one.fpga is not None}
    fpga = {**former.fpga, **mapped}
    write_json(file, SynthesisBaseline(blocks=blocks, fpga=fpga))
