# SPDX-License-Identifier: Apache-2.0
"""A result as tables and text for people. Reads nothing, decides nothing."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from driver.errors import shorten
from driver.reproduce import op_range
from driver.results import Failure, LedgerRow, OpRow, RunResult
from regress.console import PlainConsole, plain_table
from regress.run_report.layers import layer_table, layers

OPS_FILE = "ops.txt"
_WIDE = 110
_MODULE_MIN = 8
_FAILURES_SHOWN = 3
_OPS_SHOWN = 250
"""A longer table is cut to the ops that took most cycles."""
_SLOWEST = 25
_ALL_WIDTH = 200
"""Columns of the table in a file."""
_MATRICES = 2
_NOTHING = "-"
_COLOURS = {"pass": "green", "fail": "bold red", "error": "bold magenta"}
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: int | None, compact: bool) -> str:
    """A number with grouped digits, or in four characters and a unit."""
    if value is None:
        return _NOTHING
    if not compact or value < 10_000:
        return f"{value:,}".replace(",", " ")
    scale, unit = next(pair for pair in _UNITS if value >= pair[0])
    scaled = value / scale
    return f"{scaled:.1f}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"


def scientific(value: float | None) -> str:
    """Two significant digits, with the shortest exponent."""
    if value is None:
        return _NOTHING
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def shapes(row: OpRow, compact: bool) -> str:
    """The operands' sizes; compact, a matrix product as batch×M×K×N."""
    if compact and len(row.shapes) >= _MATRICES:
        left, right = row.shapes[:_MATRICES]
        if len(left) == len(right) >= _MATRICES and left[-1] == right[-2]:
            return "×".join(map(str, [*left, right[-1]]))
    return " ".join("×".join(map(str, shape)) or "scalar" for shape in row.shapes)


def error(row: OpRow, compact: bool) -> str:
    """Error and bound; compact, the part of the bound that the error takes."""
    if row.torch_max_error is None or row.torch_bound is None:
        return _NOTHING
    if not compact:
        return f"{scientific(row.torch_max_error)} / {scientific(row.torch_bound)}"
    if row.torch_bound == 0 or not math.isfinite(row.torch_max_error):
        return scientific(row.torch_max_error)
    return f"{row.torch_max_error / row.torch_bound:.0%}"


def op_table(rows: Iterable[OpRow], width: int) -> Table:
    """One row per op, fit for a console of `width` columns; without columns that say nothing."""
    rows = tuple(rows)
    compact = width < _WIDE
    mixed = len({row.where for row in rows}) > 1
    columns: list[tuple[str, bool, list[str]]] = [
        ("#", True, [str(row.index) for row in rows]),
        ("op", False, [op_name(row.op) for row in rows]),
        ("module", False, [row.module for row in rows]),
    ]
    if mixed or not compact:
        columns.append(("where", False, [row.where for row in rows]))
    columns += [
        ("dtype", False, [row.dtype for row in rows]),
        ("M×K×N" if compact else "shapes", False, [shapes(row, compact) for row in rows]),
        ("cmp" if compact else "compared", True, _counts(rows, "elements_compared", compact)),
        ("open" if compact else "no bound", True, _some(rows, "unbounded", compact)),
        ("≠cm" if compact else "≠cmodel", True, _counts(rows, "rtl_vs_cmodel_mismatches", compact)),
        ("err" if compact else "err / bound", True, [error(row, compact) for row in rows]),
        ("cycles", True, _counts(rows, "cycles", compact)),
        ("util", True, [_share(row.utilisation) for row in rows]),
        ("", False, [verdict(row) for row in rows]),
    ]
    if width >= _ALL_WIDTH:
        columns[-1:-1] = [
            ("zero", True, _counts(rows, "zeros", False)),
            ("DRAM bytes", True, _counts(rows, "dram_bytes", False)),
            ("least", True, _counts(rows, "compulsory_bytes", False)),
            ("bound by", False, [row.bound_by or _NOTHING for row in rows]),
        ]
    columns = [column for column in columns if set(column[2]) - {_NOTHING} or column[0] == "#"]
    _fit(columns, width)
    table = plain_table(gap=1)
    for name, right, _ in columns:
        table.add_column(name, justify="right" if right else "left", no_wrap=True, overflow="crop")
    for index, row in enumerate(rows):
        cells = [Text(texts[index]) for _, _, texts in columns]
        cells[-1].stylize(_COLOURS[row.status])
        table.add_row(*cells)
    return table


def verdict(row: OpRow) -> str:
    """What was found; nothing about an op that the CPU ran."""
    return _NOTHING if row.where == "cpu" else row.status


def op_name(name: str) -> str:
    """`aten.mm.default` is shown as mm."""
    return name.removeprefix("aten.").removesuffix(".default")


def _counts(rows: Iterable[OpRow], field: str, compact: bool) -> list[str]:
    return [count(getattr(row, field), compact) for row in rows]


def _some(rows: Iterable[OpRow], field: str, compact: bool) -> list[str]:
    """Counts; a column of zeros says nothing."""
    return [count(getattr(row, field) or None, compact) for row in rows]


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.0%}"


def _fit(columns: list[tuple[str, bool, list[str]]], width: int) -> None:
    """Shorten module paths, then shapes, then op names, until every row fits."""
    for name in ("module", "shapes", "M×K×N", "op"):
        total = sum(max(map(len, [head, *texts])) + 1 for head, _, texts in columns)
        if total <= width:
            return
        for head, _, texts in columns:
            if head == name and texts:
                now = max(map(len, [head, *texts]))
                texts[:] = [shorten(t, max(now - (total - width), _MODULE_MIN)) for t in texts]


def ledger_table(rows: Iterable[LedgerRow]) -> Table:
    """What ran where, and why not on the NPU."""
    table = plain_table()
    for name in ("ran on", "op", "times", "reason"):
        table.add_column(name, justify="right" if name == "times" else "left")
    for row in sorted(rows, key=lambda row: (row.where == "cpu", row.where, -row.count, row.op)):
        table.add_row(row.where, op_name(row.op), str(row.count), Text(row.reason))
    return table


def ran_on(result: RunResult) -> str:
    """The backend, and what of it is not the RTL itself."""
    array = "" if result.array == "rtl" else f" with array {result.array}"
    array += "" if result.mutant is None else f" with mutant {result.mutant}"
    return result.backend + array + ("" if result.simulator == "verilator" else " by CXXRTL")


def ledger_line(result: RunResult) -> str:
    """How much of the work was done where it should be."""
    ran = [row for row in result.ledger if row.where not in ("view", "host")]
    total = sum(row.count for row in ran)
    own = sum(row.count for row in ran if row.where == result.backend)
    text = f"ledger: {own} of {total} ops on {ran_on(result)}, {own / max(total, 1):.1%}"
    cpu = sum(row.count for row in ran if row.where == "cpu")
    text += f"; {cpu} ON THE CPU" if cpu else ""
    reads = sum(row.count for row in result.ledger if row.where == "host")
    text += f"; {reads} reads by the host" if reads else ""
    views = sum(row.count for row in result.ledger if row.where == "view")
    return text + (f"; {views} views cost nothing" if views else "")


def all_ops(result: RunResult) -> str:
    """The table of ops in full, for a file."""
    console = PlainConsole(width=_ALL_WIDTH, file=io.StringIO())
    console.print(op_table(result.ops, _ALL_WIDTH), highlight=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _shown_ops(rows: tuple[OpRow, ...]) -> tuple[OpRow, ...]:
    """All, or of very many those that failed and those that took longest."""
    if len(rows) <= _OPS_SHOWN:
        return rows
    failed = [row.index for row in rows if row.status == "fail"][:_SLOWEST]
    slowest = sorted(rows, key=lambda row: -(row.cycles or 0))[:_SLOWEST]
    chosen = {*failed, *(row.index for row in slowest)}
    return tuple(row for row in rows if row.index in chosen)


def failure_lines(result: RunResult, row: OpRow) -> list[str]:
    """Everything that is known of a failing op, one fact per line."""
    failure = row.failure
    lines = [
        f"op {row.index} {op_name(row.op)} {row.dtype} {shapes(row, compact=False)}",
        f"  module     {row.module or '-'}" + (f"  ({row.source})" if row.source else ""),
        f"  blame      {row.blame}",
    ]
    if row.rtl_vs_cmodel_mismatches:
        lines.append(
            f"  differing  {row.rtl_vs_cmodel_mismatches} of {row.elements_compared} elements"
        )
    if failure is not None:
        lines += _element_lines(failure)
        lines += [] if failure.cycle is None else [f"  cycle      {failure.cycle}"]
        lines += [f"  detail     {failure.detail}"] if failure.detail else []
    return [*lines, f"  reproduce  {reproduce(result, row)}"]


def _element_lines(failure: Failure) -> list[str]:
    """Where and what; nothing for a failure that is not about an element of the result."""
    if failure.tile is None:
        return []
    return [
        f"  element    {list(failure.element)}  in tile {list(failure.tile)}",
        f"  expected   {failure.expected_bits}  {failure.expected!r}",
        f"  actual     {failure.actual_bits}  {failure.actual!r}",
    ]


def reproduce(result: RunResult, row: OpRow) -> str:
    """The line that runs one op of the result again."""
    whole = result.reproduce.rsplit(" --op ", 1)[0]  # a failed run names its first failing op
    return f"{whole} --op {op_range(row.index, row.replay_from)}"


def summary(result: RunResult) -> Text:
    """The verdict in one line."""
    verdicts = Counter(verdict(row) for row in result.ops)
    compared, zeros, unbounded = (
        sum(getattr(row, name) for row in result.ops)
        for name in ("elements_compared", "zeros", "unbounded")
    )
    parts = [f"{verdicts['pass']} passed", f"{verdicts['fail']} failed"]
    parts += [f"{verdicts[_NOTHING]} on the CPU"] if verdicts[_NOTHING] else []
    of_them = f" ({count(zeros, False)} of them zero)" if zeros else ""
    parts.append(f"{count(compared, False)} elements compared{of_them}")
    parts += [f"{count(unbounded, False)} without a bound"] if unbounded else []
    parts += [] if result.cycles is None else [f"{count(result.cycles, False)} cycles"]
    parts.append(f"{result.wall_seconds:.1f} s")
    where = f"{result.test} on {ran_on(result)}, config {result.config}, seed {result.seed}"
    text = Text(f"{result.status.upper()} ", style=_COLOURS[result.status])
    return text.append(f"{where}: {', '.join(parts)}", style="default not bold")


def show(console: Console, result: RunResult, artefacts: Iterable[str]) -> None:
    """The whole report: ops, ledger, failures, verdict, artefacts."""
    blocks: list[RenderableType] = []
    if result.ops:
        shown = _shown_ops(result.ops)
        blocks.append(op_table(shown, console.width))
        if len(shown) < len(result.ops):
            blocks.append(Text(f"the slowest of {len(result.ops)} ops; all are in {OPS_FILE}"))
    found = layers(result.ops)
    if found:
        blocks += ["", layer_table(found)]
    if result.ledger:
        blocks += ["", ledger_table(result.ledger), Text(ledger_line(result))]
    failing = [row for row in result.ops if row.status == "fail"]
    for row in failing[:_FAILURES_SHOWN]:
        blocks += ["", *(Text(line) for line in failure_lines(result, row))]
    if len(failing) > _FAILURES_SHOWN:
        blocks += ["", f"and {len(failing) - _FAILURES_SHOWN} more failing ops in result.json"]
    if result.message:
        blocks += ["", Text(result.message), Text(f"  reproduce  {result.reproduce}")]
    blocks += ["", *(Text(note) for note in result.notes)] if result.notes else []
    blocks += ["", summary(result), *(Text(f"  {path}") for path in artefacts)]
    for block in blocks:
        console.print(block, soft_wrap=isinstance(block, Text), highlight=False)
