# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim power`: which registers toggle in which op, and which clocks stand still.

A proxy for power: toggles of registers per cycle, from the waves of one op each. It knows no
capacitance and no wires; it says what idles and what does not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from driver.config import load_config
from driver.errors import InfrastructureError, InputError
from driver.frozen import Frozen
from driver.results import OpRow, RunResult, RunSpec, write_json
from regress.console import print_line
from regress.failures.activity import OpActivity, activity
from regress.folder import fresh, locked
from regress.pages.power import write_power_page
from regress.paths import OUT
from regress.progress import ProgressBar
from regress.run import run

OPS = (
    "aten.mm.default",
    "aten.tanh.default",
    "aten.sum.dim_IntList",
    "aten.clone.default",
    "aten.index_select.default",
)
"""One for each engine, two for the vector engine: product, function, reduction, copy, gather."""
_TEST = "ops"
_LIMIT_S = 1800.0
_WAVES = "waves.fst"


class PowerReport(Frozen):
    """The ops of one configuration."""

    config: str
    ops: tuple[OpActivity, ...]


def run_power(
    console: Console, ops: Sequence[str], config: str | None, config_file: Path, out: Path | None
) -> int:
    """Record an op of each name, count, print, write page and JSON. 1 when an op fails."""
    name = "small" if config is None else config
    load_config(config_file, name)
    folder = (out or OUT / "power").absolute()
    with locked(folder, "OUT"), fresh(folder, ("power.json", "index.html", "style.css")):
        report, failed = _measured(console, ops or OPS, name, config_file.absolute(), folder)
        write_json(folder / "power.json", report)
        page = write_power_page(folder, report.config, report.ops)
    console.print(table(report))
    say = partial(print_line, console)
    for line in [*gate_lines(report), *failed, f"page: {page}"]:
        say(line)
    return 1 if failed else 0


def _measured(
    console: Console, ops: Sequence[str], config: str, config_file: Path, folder: Path
) -> tuple[PowerReport, list[str]]:
    found: list[OpActivity] = []
    failed: list[str] = []
    rows = {op: _listed(console, op, _spec(op, config, config_file)) for op in ops}
    for op, row in rows.items():
        recorded = {"backend": "rtl", "waves": "fst", "out": folder / op, "op_filter": row.index}
        spec = _spec(op, config, config_file).model_copy(update=recorded)
        result = _ran(console, spec)
        if result.status != "pass":
            failed.append(f"{op}: {result.status}: {result.message or 'see its folder'}")
        found.append(activity(folder / op / _WAVES, f"{op} {row.dtype}"))
    return PowerReport(config=config, ops=tuple(found)), failed


def _spec(op: str, config: str, config_file: Path) -> RunSpec:
    return RunSpec(
        test=_TEST,
        config=config,
        config_file=config_file,
        seed=1,
        backend="cmodel",
        waves="none",
        out=OUT,
        capsules={},
        op_filter=None,
        timeout_s=_LIMIT_S,
        name_filter=op,
    )


def _listed(console: Console, op: str, spec: RunSpec) -> OpRow:
    """The sample to record. It is looked for where nothing stays: the name may be none."""
    with tempfile.TemporaryDirectory(prefix="npu-power-") as folder:
        result = _ran(console, spec.model_copy(update={"out": Path(folder)}))
    return _largest(op, result.ops)


def _ran(console: Console, spec: RunSpec) -> RunResult:
    outcome = run(spec, ProgressBar(console, f"power, {spec.name_filter}"))
    if outcome.result.status == "error":
        raise InfrastructureError(f"{spec.name_filter}: {outcome.result.message}")
    return outcome.result


def _largest(op: str, rows: Sequence[OpRow]) -> OpRow:
    """The fp32 sample of that op with the most elements. InputError when there is none."""
    own = [row for row in rows if row.op == op and row.where == "cmodel" and row.dtype == "fp32"]
    if not own:
        raise InputError("command line", "op", op, "an op of TEST=ops with a sample in fp32")
    return max(own, key=lambda row: row.elements_compared)


def blocks_of(report: PowerReport) -> list[str]:
    """Those directly in npu_core, the whole first."""
    found = {one.block for op in report.ops for one in op.blocks if "." not in one.block}
    return sorted(found)


def table(report: PowerReport) -> Table:
    """Toggles per cycle, block × op."""
    shown = Table(title=f"{report.config}: register toggles per cycle", box=None)
    shown.add_column("block")
    shown.add_column("bits", justify="right")
    for op in report.ops:
        shown.add_column(op.op.removeprefix("aten.").replace(".default", ""), justify="right")
    bits = {one.block: one.bits for op in report.ops for one in op.blocks}
    for block in blocks_of(report):
        values = (f"{op.toggles_per_cycle(block):.1f}" for op in report.ops)
        shown.add_row(block or "all", str(bits[block]), *values)
    shown.add_row("cycles", "", *(str(op.cycles) for op in report.ops))
    return shown


def gate_lines(report: PowerReport) -> list[str]:
    """For each clock gate, in how many of the cycles its clock ran in each op."""
    lines = ["clock gates: share of cycles with a clock"]
    gates = {gate.gate: gate for op in report.ops for gate in op.gates}
    for name in gates:
        shares = (
            next((one.cycles / op.cycles for one in op.gates if one.gate == name), 0.0)
            for op in report.ops
        )
        lines.append(f"  {name:44} {'  '.join(f'{share:5.0%}' for share in shares)}")
    return lines
