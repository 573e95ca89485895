# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim test`: every check of a change, one after the other, and what came of it.

Nothing stops at a failure; the last line counts. Logs go to out/test.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from junitparser import JUnitXml, TestSuite
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driver.errors import InputError, NpuError
from driver.results import RESULT_FILE, RunResult, read_json
from regress.lint import GENERATED, LINT, TYPES, Check
from regress.paths import OUT
from regress.process import execute, last_lines, terminable
from regress.run import list_tests
from regress.units import known_units

LOGS = OUT / "test"
_LIMIT_S = 1500.0
_SHOWN_LINES = 40
_KEPT_LINES = 400
_SLOWEST = 10
_DOTS = re.compile(r"[.FEsxX]+ *\[ *\d+%\]")
"""pytest's line of progress."""
_CLI = (sys.executable, "-m", "regress.cli")

RTL_RUNS: tuple[tuple[str, str], ...] = (
    ("matmul", "default"),
    ("smoke", "small"),
    ("stalls", "small"),
    ("smoke", "large"),
    ("ops", "small"),
    ("ops", "default"),
    ("ops_stalls", "near"),
    ("graphs", "small"),
    ("lenet", "default"),
)
"""Test and configuration; all cocotb tests come on top of these, in the default configuration."""

SAME_BITS: tuple[tuple[str, ...], ...] = (("ops", "ops_stalls"), ("lenet",))
"""Tests whose runs, on whatever configuration, DRAM or backend, have one digest. The others of
sim_config.yaml are the nightly tier's."""


@dataclass(frozen=True)
class Verdict:
    """How a step ended; `text` says why when something failed."""

    passed: int
    failed: int
    text: str = ""
    notes: tuple[str, ...] = ()
    """Lines for the reader, also when all passed."""


@dataclass(frozen=True)
class Step:
    """A named part of `npu-cosim test`."""

    group: str
    name: str
    run: Callable[[], Verdict]


def run_steps(console: Console, only: Sequence[str], live: bool) -> int:
    """Run the steps of the groups `only` (all when empty). 0, or 1 when anything failed."""
    unknown = [group for group in only if group not in GROUPS]
    if unknown:
        raise InputError("command line", "steps", unknown[0], f"one of {', '.join(GROUPS)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[Step, Verdict, float]] = []
    with terminable():
        for group in GROUPS:
            if only and group not in only:
                continue
            for step in _steps(group):
                if live:
                    console.print(f"{step.group}: {step.name} …", end="\r", highlight=False)
                start = time.monotonic()
                verdict = _guarded(step)
                rows.append((step, verdict, time.monotonic() - start))
                _show_step(console, *rows[-1])
    return _show_summary(console, rows)


def _steps(group: str) -> list[Step]:
    """The group's steps; when they cannot even be listed, that is the one step that fails."""
    try:
        return list(_GROUP_STEPS[group]())
    except NpuError as error:
        return [Step(group, "list", partial(Verdict, 0, 1, str(error)))]


def _guarded(step: Step) -> Verdict:
    """The step's verdict; an error of the machinery is a failure of the step, not the end."""
    try:
        return step.run()
    except NpuError as error:
        return Verdict(0, 1, str(error))


def _show_step(console: Console, step: Step, verdict: Verdict, seconds: float) -> None:
    state = "FAIL" if verdict.failed else "ok"
    colour = "bold red" if verdict.failed else "green"
    line = Text(f"{state:5}", style=colour)
    line.append(f"{step.group}: {step.name}  {seconds:.1f} s", style="default not bold")
    console.print(line, soft_wrap=True, highlight=False)
    for note in verdict.notes:
        console.print(Text(f"     {note}"), soft_wrap=True, highlight=False)
    if verdict.failed:
        lines = verdict.text.splitlines()
        more = len(lines) - _SHOWN_LINES
        for text in [*lines[:_SHOWN_LINES], *([f"… and {more} more lines"] if more > 0 else [])]:
            console.print(Text(f"     {text}"), soft_wrap=True, highlight=False)


def _show_summary(console: Console, rows: list[tuple[Step, Verdict, float]]) -> int:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for name in ("group", "passed", "failed", "seconds"):
        table.add_column(name, justify="left" if name == "group" else "right")
    for group in dict.fromkeys(step.group for step, _, _ in rows):
        own = [(verdict, seconds) for step, verdict, seconds in rows if step.group == group]
        failed = sum(verdict.failed for verdict, _ in own)
        table.add_row(
            group,
            str(sum(verdict.passed for verdict, _ in own)),
            Text(str(failed), style="bold red" if failed else ""),
            f"{sum(seconds for _, seconds in own):.0f}",
        )
    passed = sum(verdict.passed for _, verdict, _ in rows)
    failed = sum(verdict.failed for _, verdict, _ in rows)
    console.print()
    console.print(table)
    console.print(f"\n{passed} passed, {failed} failed", highlight=False)
    return 1 if failed or not passed else 0


def _checks(group: str, checks: dict[str, Check]) -> Iterator[Step]:
    for name, check in checks.items():
        yield Step(group, name, partial(_check, check))


def _check(check: Check) -> Verdict:
    problems = check()
    return Verdict(0, 1, problems) if problems else Verdict(1, 0)


def _command(name: str, command: Sequence[str]) -> tuple[int, str]:
    """Run a command with its output in LOGS; exit status and last lines."""
    output = LOGS / f"{name}.out"
    log = LOGS / f"{name}.err"
    with output.open("w", encoding="utf-8") as file:

        def keep(line: str) -> None:
            file.write(f"{line}\n")

        ended = execute(command, log, _LIMIT_S, keep)
    said = [line for line in last_lines(output, _KEPT_LINES) if not _DOTS.fullmatch(line.strip())]
    text = "\n".join(said[-_SHOWN_LINES + 10 :] + last_lines(log, 8))
    if ended.timed_out or ended.status < 0:
        text += f"\n{name} {ended.describe(_LIMIT_S)}"
    return (ended.status or int(ended.timed_out)), text


def _python() -> Iterator[Step]:
    yield Step("python", "pytest", _pytest)


def _pytest() -> Verdict:
    """pytest, counted from its own report."""
    report = LOGS / "pytest.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-n", "2", f"--junitxml={report}"]
    status, text = _command("pytest", command)
    if not report.exists():
        return Verdict(0, 1, text or "pytest left no report")
    suites = list(JUnitXml.fromfile(str(report)))
    total = sum(suite.tests for suite in suites)
    skipped = sum(suite.skipped for suite in suites)
    failed = sum(suite.failures + suite.errors for suite in suites)
    if skipped:
        text += f"\n{skipped} tests skipped: a skipped test checks nothing"
    failed = max(failed + skipped, int(status != 0))
    return Verdict(max(total - failed, 0), failed, text, _slowest(suites))


def _slowest(suites: Iterable[TestSuite]) -> tuple[str, ...]:
    """The tests that took longest, with what they set up: where the time of a change goes."""
    cases = sorted((case for suite in suites for case in suite), key=lambda case: -case.time)
    return tuple(f"{c.time:6.1f} s  {c.classname}::{c.name}" for c in cases[:_SLOWEST])


def _units() -> Iterator[Step]:
    for name in known_units():
        yield Step("unit benches", name, partial(_run_unit, name))


def _run_unit(name: str) -> Verdict:
    status, text = _command(f"unit-{name}", [*_CLI, "unit", name])
    return Verdict(int(status == 0), int(status != 0), text)


def _rtl() -> Iterator[Step]:
    benches = [(test.name, "default") for test in list_tests() if test.kind == "cocotb"]
    for name, config in [*RTL_RUNS, *benches]:
        run_one = partial(_run_rtl, name, config, LOGS / f"{name}-{config}")
        yield Step("RTL tests", f"{name}, {config}", run_one)
    for group in SAME_BITS:
        yield Step("RTL tests", f"same bits everywhere: {group[0]}", partial(_same_bits, group))


def _same_bits(group: tuple[str, ...]) -> Verdict:
    """The digests of the runs above, and of the cmodel's."""
    out = LOGS / f"{group[0]}-cmodel"
    command = [*_CLI, "run", group[0], "--backend", "cmodel", "--out", str(out)]
    _command(f"run-{group[0]}-cmodel", command)
    folders = [LOGS / f"{name}-{config}" for name, config in RTL_RUNS if name in group]
    found = {folder.name: _digest(folder) for folder in (*folders, out)}
    if len(set(found.values())) == 1 and None not in found.values():
        return Verdict(1, 0)
    return Verdict(0, 1, "\n".join(f"{name}: {digest}" for name, digest in found.items()))


def _digest(folder: Path) -> str | None:
    try:
        return read_json(folder / RESULT_FILE, RunResult).digest
    except InputError:
        return None


def _run_rtl(name: str, config: str, out: Path) -> Verdict:
    """A run of the command line, counted by ops."""
    command = [*_CLI, "run", name, "--config", config, "--out", str(out)]
    status, text = _command(f"run-{name}-{config}", command)
    try:
        result = read_json(out / RESULT_FILE, RunResult)
    except InputError as error:
        return Verdict(0, 1, text or str(error))
    judged = [op.status for op in result.ops if op.where != "cpu"]
    failed = max(judged.count("fail"), int(status != 0))
    return Verdict(judged.count("pass"), failed, text)


_GROUP_STEPS: dict[str, Callable[[], Iterator[Step]]] = {
    "lint": lambda: _checks("lint", LINT),
    "types": lambda: _checks("types", TYPES),
    "gen-check": lambda: _checks("gen-check", GENERATED),
    "python": _python,
    "unit": _units,
    "rtl": _rtl,
}
GROUPS = tuple(_GROUP_STEPS)
