# SPDX-License-Identifier: Apache-2.0
"""The steps of `npu-cosim test`: what each runs, and how its output counts."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from junitparser import JUnitXml, TestSuite

from driver.errors import InputError
from driver.results import RESULT_FILE, RunResult, read_json
from regress.lint import GENERATED, LINT, TYPES, Check
from regress.process import execute, last_lines
from regress.units import known_units

CORES = 2
"""Steps at once; pytest has as many processes."""
_LIMIT_S = 1800.0
"""Of each step; pytest, the longest, takes eleven minutes."""
_KEPT_LINES = 400
_OUTPUT_LINES = 30
_SLOWEST = 10
_DOTS = re.compile(r"[.FEsxX]+ *\[ *\d+%\]")
"""pytest's line of progress."""
_CLI = (sys.executable, "-m", "regress.cli")

RTL_RUNS: tuple[tuple[str, str], ...] = (
    ("matmul", "default"),
    ("smoke", "small"),
    ("stalls", "small"),
    ("ops", "small"),
    ("ops", "default"),
    ("ops_stalls", "near"),
    ("graphs", "small"),
    ("lenet", "default"),
)
"""Test and configuration. What takes longest comes first: two run at once, and the last one must
not run alone. The first has a simulator to build. The cocotb tests and `large` are the ci tier's,
which has to build theirs in any case."""

SAME_BITS: tuple[tuple[str, ...], ...] = (("ops", "ops_stalls"), ("lenet",))
"""Tests whose runs, on whatever configuration, DRAM or backend, have one digest. The others of
sim_config.yaml are the nightly tier's."""

LEFT_TO_TIERS = ("broad", "second_simulator", "planted_mutants")
"""Markers of the Python tests that tiers run, each as the test of its name: those of tb/tests of
kind "pytest"."""


@dataclass(frozen=True)
class CheckResult:
    """How a step ended; `text` says why when something failed."""

    passed: int
    failed: int
    text: str = ""
    notes: tuple[str, ...] = ()
    """Lines for the reader, also when all passed."""


class Commands:
    """Runs commands until it is stopped, with their output in a folder."""

    def __init__(self, logs: Path, stop: threading.Event) -> None:
        self.logs = logs
        self._stop = stop

    def run(self, name: str, command: Sequence[str]) -> tuple[int, str]:
        """Exit status and last lines of a command, which is ended when the steps are."""
        output = self.logs / f"{name}.out"
        log = self.logs / f"{name}.err"
        with output.open("w", encoding="utf-8") as file:

            def keep(line: str) -> None:
                file.write(f"{line}\n")

            ended = execute(command, log, _LIMIT_S, keep, on_idle=self._check)
        lines = last_lines(output, _KEPT_LINES)
        said = [line for line in lines if not _DOTS.fullmatch(line.strip())]
        text = "\n".join(said[-_OUTPUT_LINES:] + last_lines(log, 8))
        if ended.timed_out or ended.status < 0:
            text += f"\n{name} {ended.describe(_LIMIT_S)}"
        return (ended.status or int(ended.timed_out)), text

    def _check(self) -> None:
        if self._stop.is_set():
            raise StepsEndedError


class StepsEndedError(Exception):
    """The steps are being ended: the user has interrupted them."""


@dataclass(frozen=True)
class CheckStep:
    """A named part of `npu-cosim test`."""

    group: str
    name: str
    run: Callable[[Commands], CheckResult]


StepLister = Callable[[], Iterator[CheckStep]]
Phase = tuple[tuple[str, StepLister], ...]
"""Groups and their steps, which run at once and in any order."""


def _checks(group: str, checks: dict[str, Check]) -> Iterator[CheckStep]:
    for name, check in checks.items():
        yield CheckStep(group, name, partial(_check, check))


def _check(check: Check, _: Commands) -> CheckResult:
    problems = check()
    return CheckResult(0, 1, problems) if problems else CheckResult(1, 0)


def _python() -> Iterator[CheckStep]:
    yield CheckStep("python", "pytest", _pytest)


def _pytest(commands: Commands) -> CheckResult:
    """pytest, counted from its own report."""
    report = commands.logs / "pytest.xml"
    report.unlink(missing_ok=True)
    others = " and ".join(f"not {marker}" for marker in LEFT_TO_TIERS)
    options = ["-m", others, "-n", str(CORES), "--dist", "worksteal"]
    status, text = commands.run(
        "pytest", [sys.executable, "-m", "pytest", *options, f"--junitxml={report}"]
    )
    if not report.exists():
        return CheckResult(0, 1, text or "pytest left no report")
    suites = list(JUnitXml.fromfile(str(report)))
    total = sum(suite.tests for suite in suites)
    skipped = sum(suite.skipped for suite in suites)
    failed = sum(suite.failures + suite.errors for suite in suites)
    if skipped:
        text += f"\n{skipped} tests skipped: a skipped test checks nothing"
    failed = max(failed + skipped, int(status != 0))
    text = "\n".join((*_not_passed(suites), text))
    return CheckResult(max(total - failed, 0), failed, text, _slowest(suites))


def _not_passed(suites: Iterable[TestSuite]) -> Iterator[str]:
    """The tests that failed, with the first line of why: what a cut log must not lose."""
    for case in (case for suite in suites for case in suite):
        for result in case.result:
            why = (result.message or "").partition("\n")[0]
            yield f"{case.classname}::{case.name}: {why}"


def _slowest(suites: Iterable[TestSuite]) -> tuple[str, ...]:
    """The tests that took longest, with what they set up: where the time of a change goes."""
    cases = sorted((case for suite in suites for case in suite), key=lambda case: -case.time)
    return tuple(f"{c.time:6.1f} s  {c.classname}::{c.name}" for c in cases[:_SLOWEST])


def _units() -> Iterator[CheckStep]:
    for name in reversed(known_units()):  # the blocks take longest, and the last must not run alone
        yield CheckStep("unit benches", name, partial(_run_unit, name))


def _run_unit(name: str, commands: Commands) -> CheckResult:
    status, text = commands.run(f"unit-{name}", [*_CLI, "unit", name])
    return CheckResult(int(status == 0), int(status != 0), text)


def _rtl() -> Iterator[CheckStep]:
    for name, config in RTL_RUNS:
        yield CheckStep("RTL tests", f"{name}, {config}", partial(_run_rtl, name, config))


def _digests() -> Iterator[CheckStep]:
    for group in SAME_BITS:
        yield CheckStep(
            "RTL tests", f"same bits everywhere: {group[0]}", partial(_same_bits, group)
        )


def _same_bits(group: tuple[str, ...], commands: Commands) -> CheckResult:
    """The digests of the runs above, and of the cmodel's."""
    out = commands.logs / f"{group[0]}-cmodel"
    words = [*_CLI, "run", group[0], "--backend", "cmodel", "--out", str(out)]
    status, text = commands.run(f"run-{group[0]}-cmodel", words)
    if status:
        return CheckResult(0, 1, text)
    folders = [commands.logs / f"{name}-{config}" for name, config in RTL_RUNS if name in group]
    found = {folder.name: _digest(folder) for folder in (*folders, out)}
    if len(set(found.values())) == 1 and None not in found.values():
        return CheckResult(1, 0)
    return CheckResult(0, 1, "\n".join(f"{name}: {digest}" for name, digest in found.items()))


def _digest(folder: Path) -> str | None:
    try:
        return read_json(folder / RESULT_FILE, RunResult).digest
    except InputError:
        return None


def _run_rtl(name: str, config: str, commands: Commands) -> CheckResult:
    """A run of the command line, counted by ops."""
    out = commands.logs / f"{name}-{config}"
    words = [*_CLI, "run", name, "--config", config, "--out", str(out)]
    status, text = commands.run(f"run-{name}-{config}", words)
    try:
        result = read_json(out / RESULT_FILE, RunResult)
    except InputError as error:
        return CheckResult(0, 1, text or str(error))
    judged = [op.status for op in result.ops if op.where != "cpu"]
    failed = max(judged.count("fail"), int(status != 0))
    return CheckResult(judged.count("pass"), failed, text)


PHASES: tuple[Phase, ...] = (
    (
        ("lint", partial(_checks, "lint", LINT)),
        ("types", partial(_checks, "types", TYPES)),
        ("gen-check", partial(_checks, "gen-check", GENERATED)),
        ("unit", _units),
    ),
    (("python", _python),),
    (("rtl", _rtl),),
    (("rtl", _digests),),
)
"""All steps; those of a phase start when all of the one before have ended."""
