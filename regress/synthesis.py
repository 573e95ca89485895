# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim synth`: what the netlist of each configuration costs, against the recorded figures.

The netlist is made and counted by `tb.netlist.measure`, in a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from driver.config import load_config, load_configs
from driver.errors import InfrastructureError, InputError, ProcessRefused
from driver.files import read_json
from driver.results import write_json
from driver.synthesis import (
    FIGURES,
    FPGA_FIGURES,
    BlockCost,
    FpgaCost,
    FpgaMapping,
    FpgaUnmapped,
    SynthesisReport,
)
from regress import synthesis_baseline as baseline
from regress.console import print_line
from regress.options import SynthesisOptions
from regress.pages.synthesis import write_synthesis_page
from regress.paths import CONFIG_FILE, OUT
from regress.process import execute, last_lines, terminable
from regress.progress import ProgressBar

CONFIGS = ("small", "default", "large", "lanes8")
"""Those measured without CONFIG=: the others have the parameters of one of them, or its shape."""
LIMIT_S = 3600.0
FPGA_LIMIT_S = 3 * LIMIT_S
"""With every module mapped; each has a limit of its own (tb/netlist/fpga.py)."""
_SHOWN_DEPTH = 2
_PATHS = 3


def run_synthesis(console: Console, options: SynthesisOptions) -> int:
    """Measure, print, write page and JSON, compare with the baseline or record it.

    1 when a figure has left its baseline, or there is a latch that is no clock gate's.
    """
    config, config_file, record = options.config, options.config_file, options.record
    known = load_configs(config_file)
    if config is not None:
        load_config(config_file, config)
    own = config_file.resolve() == CONFIG_FILE.resolve()
    listed = tuple(name for name in CONFIGS if name in known) if own else tuple(known)
    names = (config,) if config else listed
    if record and not own:
        raise InputError("command line", "config_file", config_file, f"{CONFIG_FILE} to record")
    folder = (options.out or OUT / "synth").absolute()
    reports = _measured(
        names, config_file, folder, ProgressBar(console, "synth", "configurations"), options.fpga
    )
    say = partial(print_line, console)
    for report in reports:
        console.print(table(report))
        _say_paths(report, say)
        _say_fpga(report, console)
    write_json(folder / "synthesis.json", baseline.SynthesisReports(reports=reports))
    page = write_synthesis_page(folder, reports)
    say(f"page: {page}")
    bad = [f"{one.config}: a latch: {latch}" for one in reports for latch in one.latches]
    bad += [line for one in reports if record for line in baseline.holes(one)]
    former = baseline.recorded() if own else None
    moved = [] if record or not own else baseline.moved(former, reports)
    notes = [] if record else baseline.without_fpga(former, reports)
    notes += [] if own else [f"not compared: the baseline is of {CONFIG_FILE}"]
    for line in (*bad, *moved, *notes):
        say(line)
    if moved:
        say("after a change that means it: make synth RECORD=1")
    if record and not bad:
        baseline.record(reports)
        say(f"recorded {', '.join(names)} in {baseline.FILE.name}")
    return 1 if bad or moved else 0


def _measured(
    names: Sequence[str], config_file: Path, folder: Path, progress: ProgressBar, fpga: bool
) -> tuple[SynthesisReport, ...]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(folder, "folder", error.strerror, "one for reports") from error
    reports = []
    with terminable(), progress:
        progress.plan(len(names))
        for name in names:
            reports.append(_measure(name, config_file, folder, progress, fpga))
            progress.done()
    return tuple(reports)


def _measure(
    name: str, config_file: Path, folder: Path, progress: ProgressBar, fpga: bool
) -> SynthesisReport:
    file, log = folder / f"{name}.json", folder / f"{name}.log"
    command = [sys.executable, "-m", "tb.netlist.measure", "--config", name]
    command += ["--sim-config", str(config_file.absolute()), "--out", str(file)]
    command += ["--limit", str(LIMIT_S)]
    command += ["--fpga"] if fpga else []
    limit_s = FPGA_LIMIT_S if fpga else LIMIT_S
    ended = execute(command, log, limit_s, progress.note, on_idle=progress.tick)
    if ended.status == 0 and not ended.timed_out:
        return read_json(file, SynthesisReport)
    said = "".join(last_lines(log, 1))
    if ended.status == ProcessRefused.exit_code and said:
        raise ProcessRefused(said)
    raise InfrastructureError(f"netlist of {name}: {said or ended.describe(limit_s)}")


def table(report: SynthesisReport) -> Table:
    """The blocks of one configuration."""
    shown = Table(title=f"{report.config} ({report.tool})", title_justify="left", box=None)
    shown.add_column("block")
    for name in HEADS.values():
        shown.add_column(name, justify="right")
    for block in report.blocks:
        if depth(block) <= _SHOWN_DEPTH and worth_showing(block):
            values = (f"{getattr(block, figure):,}".replace(",", " ") for figure in FIGURES)
            shown.add_row(f"{'  ' * depth(block)}{label(block)}", *values)
    return shown


def fpga_table(config: str, mapping: FpgaMapping) -> Table:
    """The blocks of one configuration on an FPGA."""
    title = f"{config} on {mapping.device}, module by module"
    shown = Table(title=title, title_justify="left", box=None)
    shown.add_column("block")
    for name in FPGA_HEADS.values():
        shown.add_column(name, justify="right")
    for block in mapping.blocks:
        values = (f"{getattr(block, figure):,}".replace(",", " ") for figure in FPGA_FIGURES)
        shown.add_row(label(block), *values)
    for missing in mapping.unmapped:
        kinds = ", ".join(missing.modules)
        shown.add_row(label(missing), f"{kinds}: not done in {mapping.limit_s:g} s of CPU time")
    return shown


HEADS = {
    "cells": "cells",
    "flip_flops": "flip-flops",
    "memories": "memories",
    "memory_bits": "memory bits",
    "multipliers": "multipliers",
    "dsp": "18×18",
    "levels": "levels",
}
"""Figure → head of its column."""

FPGA_HEADS = {
    "luts": "LUT4",
    "carries": "carry CCU2C",
    "lut_rams": "LUT RAM 16×4",
    "flip_flops": "flip-flops",
    "block_rams": "block RAM 18K",
    "multipliers": "18×18",
}
"""The same for those of an FPGA."""


def depth(block: BlockCost) -> int:
    """0 for the top, 1 for what is directly in npu_core."""
    return 0 if not block.block else block.block.count(".")


def label(block: BlockCost | FpgaCost | FpgaUnmapped) -> str:
    """The last part of the path."""
    return block.block.rpartition(".")[2] or "npu_top"


def worth_showing(block: BlockCost) -> bool:
    """Not the core, which is the whole, and not the gates."""
    return block.block != "u_core" and (block.cells > 8 or block.memory_bits > 0)


def _say_paths(report: SynthesisReport, say: Callable[[str], None]) -> None:
    for path in report.paths[:_PATHS]:
        way = ", ".join(f"{block} {levels}" for block, levels in path.by_block)
        say(f"  {path.levels} levels: {path.start} → {path.end} ({way})")
    gates = len(report.clock_gates)
    say(f"  {gates} clock gates, {len(report.latches)} other latches")


def _say_fpga(report: SynthesisReport, console: Console) -> None:
    if report.fpga is not None:
        console.print(fpga_table(report.config, report.fpga))
