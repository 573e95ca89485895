# SPDX-License-Identifier: Apache-2.0
"""What came of a plan: the table at the end, the exit status, JUnit for CI servers."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from rich.console import Console
from rich.text import Text

from driver.results import PROGRAM
from regress.console import plain_table
from regress.paths import CONFIG_FILE
from regress.results.location import StoreLocation
from regress.results.model import (
    ItemResult,
    JobStatus,
    Plan,
    PlannedJob,
    PreparationRecord,
    SkipCause,
)
from regress.run_report.junit import legal, write_whole

_SHOWN_RED = 20
_STYLES = {JobStatus.PASS: "green", JobStatus.SKIPPED: "yellow"}
PENDING = "not run"


@dataclass(frozen=True)
class ResultCounts:
    """Planned items by what came of them. `pending` is what --resume would run and is unexplained:
    neither executed nor left out for a reason."""

    planned: int
    by_status: Counter[JobStatus]
    pending: int
    red_skips: int
    expected: Counter[JobStatus] = field(default_factory=Counter)
    """Of `by_status`, those that are known issues: they leave the exit status alone."""

    @property
    def executed(self) -> int:
        """Items that ran to an end of their own."""
        return sum(count for status, count in self.by_status.items() if status.executed)

    @property
    def complete(self) -> bool:
        """Whether every planned item was executed, or left out for a stated reason."""
        explained = self.executed + self.by_status[JobStatus.SKIPPED]
        return explained == self.planned

    @property
    def exit_code(self) -> int:
        """0 all green; 1 a verdict failed; 3 something else is red, or nothing was executed."""
        counted = self.by_status - self.expected
        if counted[JobStatus.FAIL]:
            return 1
        red = any(count for status, count in counted.items() if status.red)
        if red or self.red_skips or not self.complete or not self.executed:
            return 3
        return 0


def count_results(
    item_results: Iterable[ItemResult], expected: Container[str] = ()
) -> ResultCounts:
    """Count; every item is in exactly one status, or pending. `expected` are ids of items whose
    failure is a known issue."""
    by_status: Counter[JobStatus] = Counter()
    known: Counter[JobStatus] = Counter()
    planned = pending = red_skips = 0
    for item_result in item_results:
        planned += 1
        last = item_result.last
        if last is None:
            pending += 1
            continue
        by_status[last.status] += 1
        known[last.status] += last.status.red and item_result.item.id in expected
        red_skips += last.skip_cause is SkipCause.PREPARATION
    return ResultCounts(planned, by_status, pending, red_skips, known)


def show(
    console: Console,
    plan: Plan,
    item_results: Sequence[ItemResult],
    location: StoreLocation,
) -> None:
    """The summary: a row per test and configuration, then what is red."""
    counted = count_results(item_results)
    used = [status for status in JobStatus if counted.by_status[status]]
    table = plain_table()
    table.add_column("test")
    columns = [
        "planned",
        *(status.value for status in used),
        *([PENDING] if counted.pending else []),
    ]
    for name in (*columns, "seconds"):
        table.add_column(name, justify="right")
    for name, group in _groups(item_results).items():
        table.add_row(Text(name), *_cells(group, used, bool(counted.pending)))
    table.add_section()
    table.add_row("total", *_cells(item_results, used, bool(counted.pending)), style="bold")
    console.print(table)
    red = [(o.item, o.last) for o in item_results if o.last is not None and o.last.red]
    for item, last in red[:_SHOWN_RED]:
        line = f"{last.status.value:7} {item.label} [{last.id}]: {last.reason}"
        console.print(Text(line, style="red"), soft_wrap=True)
    if len(red) > _SHOWN_RED:
        console.print(f"… and {len(red) - _SHOWN_RED} more", highlight=False)
    verdict = f"plan {plan.id}: {counted.executed} of {counted.planned} executed"
    style = "green" if counted.exit_code == 0 else "red"
    console.print(
        Text(f"{verdict}, {counted.by_status[JobStatus.PASS]} passed", style=f"bold {style}")
    )
    if not counted.complete:
        console.print(Text(resume_line(plan, location)), soft_wrap=True)


def resume_line(plan: Plan, location: StoreLocation) -> str:
    """How the jobs that were not executed are run."""
    words = [*PROGRAM.split(), "nightly", plan.tier, "--resume", *location.options()]
    if Path(plan.config_file) != CONFIG_FILE:
        words += ["--config-file", plan.config_file]
    return f"the rest: {shlex.join(words)}"


def build_share(
    item_results: Iterable[ItemResult], preparations: Iterable[PreparationRecord]
) -> str:
    """What builds and captures cost beside the runs; empty where nothing was counted."""
    ran = sum(a.cpu_seconds or 0.0 for item_result in item_results for a in item_result.attempts)
    prepared = sum(preparation.cpu_seconds for preparation in preparations)
    if not ran + prepared:
        return ""
    share = prepared / (ran + prepared)
    return f"builds and captures: {prepared:.0f} of {ran + prepared:.0f} s CPU ({share:.0%})"


def _groups(item_results: Iterable[ItemResult]) -> dict[str, list[ItemResult]]:
    groups: dict[str, list[ItemResult]] = {}
    for item_result in item_results:
        groups.setdefault(_group(item_result.item), []).append(item_result)
    return groups


def _group(item: PlannedJob) -> str:
    name = item.test if item.workload is None else f"{item.test}:{item.workload}"
    return f"{name}[{item.config}]{'' if item.backend == 'rtl' else f' {item.backend}'}"


def _cells(
    item_results: Sequence[ItemResult], used: Sequence[JobStatus], pending: bool
) -> list[Text]:
    counted = count_results(item_results)
    cells = [Text(str(counted.planned))]
    for status in used:
        count = counted.by_status[status]
        style = _STYLES.get(status, "bold red") if count else "dim"
        cells.append(Text(str(count), style=style))
    if pending:
        cells.append(Text(str(counted.pending), style="bold red" if counted.pending else "dim"))
    seconds = sum(
        attempt.seconds for item_result in item_results for attempt in item_result.attempts
    )
    return [*cells, Text(f"{seconds:.0f}")]


def write_plan_junit(plan: Plan, item_results: Sequence[ItemResult], path: Path) -> None:
    """junit.xml of a plan: one test case per item."""
    suite = TestSuite(f"{plan.tier} {plan.id}")
    for name in ("revision", "seed", "command"):
        suite.add_property(name, legal(str(getattr(plan, name))))
    suite.add_testcases(
        [_case(item_result) for item_result in item_results]
    )  # one by one is quadratic
    xml = JUnitXml()
    xml.add_testsuite(suite)
    xml.update_statistics()  # type: ignore[no-untyped-call]
    write_whole(xml, path)


def _case(item_result: ItemResult) -> TestCase:
    item, last = item_result.item, item_result.last
    case = TestCase(legal(item.label), classname=_group(item))
    if last is None:
        case.result = [Error("planned, but not executed", type_=PENDING)]
        return case
    case.time = last.seconds
    case.system_out = legal(f"id {last.id}\nfolder {last.folder}\n")
    if last.status is JobStatus.SKIPPED and not last.red:
        case.result = [Skipped(legal(last.reason))]
    elif last.red:
        kind = Failure if last.status is JobStatus.FAIL else Error
        case.result = [kind(legal(last.reason), type_=last.status.value)]
    return case
