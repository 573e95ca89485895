# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim accuracy`: measures the functions, keeps docs/accuracy.json and its table in step.

golden.accuracy measures; this knows only how a measurement is kept and shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console

from driver.errors import InputError
from driver.frozen import Frozen
from driver.results import write_text
from golden.accuracy import BF16, FP16, FP32, AccuracyFormat, measure
from golden.functions import FUNCTIONS, Function
from regress.paths import ROOT

RECORD = Path("docs/accuracy.json")
PAGE = Path("docs/numerics.md")
RECORDED_POINTS = 40_000_000
"""Fewer numbers per function are a look, not a measurement."""
BEGIN, END = "<!-- accuracy: written by npu-cosim accuracy -->", "<!-- /accuracy -->"
_LAST_DIGIT = 1e-3
"""Of an error on record, which is rounded up."""
_FORMATS = (FP32, FP16, BF16)
_HEAD = ("function", "domain", "fp32", "fp16", "bf16", "monotonic", "instructions")


class AccuracyRow(Frozen):
    """A function in a format, as measured."""

    function: str
    format: str
    program: str
    code: str
    instructions: int
    points: int
    max_ulp: float
    at: tuple[float, ...]
    monotonic: bool | None


def accuracy(console: Console, names: Sequence[str], points: int) -> int:
    """Measure the named functions, or all; print, and put on record if the points suffice.

    1 when a special value is wrong; the record then stays.
    """
    known = {function.name: function for function in FUNCTIONS}
    for name in names:
        if name not in known:
            raise InputError("command line", "function", name, f"one of {', '.join(known)}")
    rows: list[AccuracyRow] = []
    for function in [known[name] for name in names] or FUNCTIONS:
        for form in _FORMATS:
            row = _row(function, form, points)
            if math.isinf(row.max_ulp):
                console.print(f"{row.program} of {row.at}, {row.format}: ∞, NaN or −0 is wrong")
                return 1
            rows.append(row)
        console.print(table([function], rows)[-1], markup=False, highlight=False)
    if points >= RECORDED_POINTS:
        _put_on_record(rows)
        console.print(f"wrote {RECORD} and the table of {PAGE}", markup=False, highlight=False)
    return 0


def _put_on_record(fresh: Sequence[AccuracyRow]) -> None:
    """These rows instead of those of the same functions."""
    measured = {row.function for row in fresh}
    kept = [row for row in recorded() if row.function not in measured]
    order = [function.name for function in FUNCTIONS]
    rows = sorted([*kept, *fresh], key=lambda row: order.index(row.function))
    write_text(ROOT / RECORD, record(rows))
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    write_text(ROOT / PAGE, with_table(page, rows))


def _row(function: Function, form: AccuracyFormat, points: int) -> AccuracyRow:
    found = measure(function, form, points)
    return AccuracyRow(
        function=function.name,
        format=form.name,
        program=found.program,
        code=found.code,
        instructions=found.cycles,
        points=found.points,
        max_ulp=round(found.max_ulp + _LAST_DIGIT / 2, 3),
        at=found.at,
        monotonic=found.monotonic,
    )


def record(rows: Iterable[AccuracyRow]) -> str:
    """The text of docs/accuracy.json."""
    return json.dumps([row.model_dump() for row in rows], indent=1, ensure_ascii=False) + "\n"


def recorded(root: Path = ROOT) -> list[AccuracyRow]:
    """The rows of docs/accuracy.json."""
    return TypeAdapter(list[AccuracyRow]).validate_json((root / RECORD).read_bytes())


def table(functions: Sequence[Function], rows: Sequence[AccuracyRow]) -> list[str]:
    """The Markdown table: one line per function."""
    lines = [f"| {' | '.join(_HEAD)} |", "|---|---|---|---|---|---|---|"]
    for function in functions:
        mine = [row for row in rows if row.function == function.name]
        errors = [f"{row.max_ulp:.3f}" for row in mine]
        lengths = list(dict.fromkeys(str(row.instructions) for row in mine))
        cells = [
            f"`{function.name}`",
            function.text,
            *errors,
            _monotonic(mine),
            " / ".join(lengths),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _monotonic(rows: Sequence[AccuracyRow]) -> str:
    if any(row.monotonic is None for row in rows):
        return ""
    yes = [row.format for row in rows if row.monotonic]
    return "yes" if len(yes) == len(rows) else ", ".join(yes) or "no"


def with_table(page: str, rows: Sequence[AccuracyRow]) -> str:
    """The page with the table between its marks replaced."""
    head, found, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (found and end):
        raise InputError(str(PAGE), "marks", "missing", f"{BEGIN} … {END}")
    return "\n".join([head + BEGIN, *table(FUNCTIONS, rows), END + tail])
