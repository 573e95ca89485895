# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim compare BEFORE AFTER`: what a change of the RTL did to the bits and cycles of a test.

Cycles and bits are deterministic: every difference is one of the change. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driver.errors import InputError
from driver.results import RESULT_FILE, OpRow, RunResult, read_json
from regress.console import console, plain_table
from regress.run_report.text import count, op_name, shapes, verdict

_SHOWN = 25
"""Rows of the table: those that changed most."""
_SAME_RUN = ("test", "seed")
"""What two runs must share to be of the same ops on the same data."""


def mount(app: typer.Typer) -> None:
    """Add the command."""

    @app.command("compare")
    def compare(
        before: Annotated[Path, typer.Argument(help="Folder of a run.")],
        after: Annotated[Path, typer.Argument(help="Folder of a later run.")],
        slower: Annotated[
            float, typer.Option(help="Percent of cycles by which it may be slower.", min=0)
        ] = 0.0,
    ) -> int:
        """Compare bits, verdicts and cycles of two runs of a test."""
        return show(console(), RunComparison.read(before, after), slower)


@dataclass(frozen=True)
class OpPair:
    """The same op in both runs; None in a run that has it not."""

    before: OpRow | None
    after: OpRow | None

    @property
    def row(self) -> OpRow:
        """Either of them."""
        row = self.after or self.before
        assert row is not None
        return row

    @property
    def more_cycles(self) -> int:
        """How many more the later run takes for it; 0 unless both know theirs."""
        before, after = (None if row is None else row.cycles for row in (self.before, self.after))
        return 0 if before is None or after is None else after - before

    @property
    def verdicts(self) -> str:
        """ "pass", or what it was and is."""
        before, after = ("-" if row is None else verdict(row) for row in (self.before, self.after))
        return after if before == after else f"{before} → {after}"

    @property
    def changed(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.more_cycles) or "→" in self.verdicts


@dataclass(frozen=True)
class RunComparison:
    """Two runs of one test."""

    before: RunResult
    after: RunResult

    @classmethod
    def read(cls, before: Path, after: Path) -> RunComparison:
        """From the folders of the runs. InputError for one without a result, and for runs of
        other tests or other data."""
        results = [read_json(folder / RESULT_FILE, RunResult) for folder in (before, after)]
        for field in _SAME_RUN:
            old, new = (getattr(result, field) for result in results)
            if old != new:
                expected = f"{old}, as in {before / RESULT_FILE}"
                raise InputError(after / RESULT_FILE, field, new, expected)
        return cls(*results)

    @cached_property
    def pairs(self) -> tuple[OpPair, ...]:
        """The ops of both. Directed shapes depend on the configuration: an op of another name or
        other sizes is another op."""
        rows = [{(r.index, r.op, r.shapes): r for r in run.ops} for run in self._runs]
        return tuple(
            OpPair(rows[0].get(key), rows[1].get(key)) for key in sorted(rows[0] | rows[1])
        )

    def worse(self, slower: float) -> Iterator[str]:
        """What speaks against the later run, a phrase each. `slower`: percent of the cycles."""
        if self.after.status != "pass" and self.before.status == "pass":
            yield f"{self.after.status} instead of pass"
        gone = [pair for pair in self.pairs if pair.after is None]
        if gone and self.before.config == self.after.config:
            yield f"op {gone[0].row.index} is gone"
        for name, known in self._known.items():
            if known == [True, False]:
                yield f"{name} unknown"
        failing = [pair for pair in self.pairs if pair.verdicts.endswith("→ fail")]
        if failing:
            others = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
            yield f"op {failing[0].row.index}{others} failed"
        if self.other_bits and self.before.status == "pass":
            yield "other bits"
        compared = [sum(row.elements_compared for row in run.ops) for run in self._runs]
        if compared[1] < compared[0]:
            yield f"{count(compared[0] - compared[1], False)} elements less compared"
        cycles, now = (run.cycles for run in self._runs)
        if cycles is not None and now is not None and now > cycles * (1 + slower / 100):
            yield "slower"

    @property
    def _known(self) -> dict[str, list[bool]]:
        """Whether each run has what decides: shards have no digest, the cmodel no cycles."""
        return {
            "bits": [run.digest is not None for run in self._runs],
            "cycles": [run.cycles is not None for run in self._runs],
        }

    @property
    def not_compared(self) -> list[str]:
        """What the verdict does not speak of."""
        return [name for name, known in self._known.items() if not all(known)]

    @property
    def other_bits(self) -> bool:
        """Whether the results differ; they are the same on every configuration and backend."""
        digests = [run.digest for run in self._runs]
        return None not in digests and digests[0] != digests[1]

    @property
    def _runs(self) -> tuple[RunResult, RunResult]:
        return self.before, self.after

    def totals(self) -> Iterator[tuple[str, str]]:
        """A name and what is to say of it, for the whole of both runs."""
        if "bits" not in self.not_compared:
            yield "bits", "other results" if self.other_bits else "the same in all results"
        for name, of in _FIGURES.items():
            figures = [of(run) for run in self._runs]
            if figures != [None, None]:
                yield name, _change(*figures)
        if "cycles" in self.not_compared:
            return
        more = [pair.more_cycles for pair in self.pairs]
        signs = [sum(x < 0 for x in more), sum(x > 0 for x in more), sum(x == 0 for x in more)]
        yield "ops", f"{signs[0]} faster, {signs[1]} slower, {signs[2]} the same"


def _passed(run: RunResult) -> int:
    return sum(row.status == "pass" for row in run.ops)


def _sum(field: str) -> Callable[[RunResult], int | None]:
    def of(run: RunResult) -> int | None:
        values = [getattr(row, field) for row in run.ops]
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    return of


_FIGURES: dict[str, Callable[[RunResult], int | None]] = {
    "passed": _passed,
    "compared": _sum("elements_compared"),
    "packets": _sum("packets"),
    "DRAM bytes": _sum("dram_bytes"),
    "cycles": lambda run: run.cycles,
}


def _change(before: int | None, after: int | None) -> str:
    if before == after:
        return count(after, False)
    arrow = f"{count(before, False)} → {count(after, False)}"
    return arrow if before is None or after is None else f"{arrow}  {_percent(before, after)}"


def _percent(before: int, after: int) -> str:
    return f"{(after - before) / before:+.2%}" if before else "new"


def _table(pairs: Sequence[OpPair]) -> Table:
    table = plain_table(gap=1)
    for name in ("#", "op", "module", "shapes", "before", "after", "cycles", ""):
        right = name in ("#", "before", "after", "cycles")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for pair in pairs:
        row = pair.row
        cycles = [None if side is None else side.cycles for side in (pair.before, pair.after)]
        more = pair.more_cycles
        table.add_row(
            str(row.index),
            op_name(row.op),
            row.module,
            shapes(row, compact=True),
            *(count(value, False) for value in cycles),
            _percent(cycles[0] or 0, cycles[1] or 0) if more else "",
            Text(pair.verdicts, style="bold red" if pair.verdicts.endswith("→ fail") else ""),
        )
    return table


def show(out: Console, comparison: RunComparison, slower: float) -> int:
    """Print what changed, most first. 1 if the later run is worse, else 0."""
    changed = [pair for pair in comparison.pairs if pair.changed]
    changed.sort(key=lambda pair: ("→" not in pair.verdicts, -abs(pair.more_cycles)))
    if changed:
        out.print(_table(changed[:_SHOWN]), highlight=False)
        if len(changed) > _SHOWN:
            out.print(f"and {len(changed) - _SHOWN} more ops that changed less", highlight=False)
        out.print()
    for name, text in comparison.totals():
        out.print(f"  {name:<11}{text}", soft_wrap=True, highlight=False)
    worse = ", ".join(comparison.worse(slower))
    configs = dict.fromkeys((comparison.before.config, comparison.after.config))
    test = f"{comparison.after.test}, seed {comparison.after.seed}, {' → '.join(configs)}"
    said = f"WORSE {test}: {worse}" if worse else f"NOT WORSE {test}"
    if comparison.not_compared:
        said += f"; not compared: {', '.join(comparison.not_compared)}"
    out.print(Text(said, style="bold red" if worse else "green"), soft_wrap=True)
    return 1 if worse else 0
