# SPDX-License-Identifier: Apache-2.0
"""What came of a plan: the table at the end, the exit status, JUnit for CI servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driver.results import PROGRAM
from regress.junit import legal, write_whole
from regress.nightly.model import Outcome, Plan, PlanItem, Preparation, SkipCause, State

_SHOWN_RED = 20
_STYLES = {State.PASS: "green", State.SKIPPED: "yellow"}
PENDING = "not run"


@dataclass(frozen=True)
class Tally:
    """Planned items by what came of them. `pending` is what --resume would run and is unexplained:
    neither executed nor left out for a reason."""

    planned: int
    states: Counter[State]
    pending: int
    red_skips: int
    expected: Counter[State] = field(default_factory=Counter)
    """Of `states`, those that are known issues: they leave the exit status alone."""

    @property
    def executed(self) -> int:
        """Items that ran to an end of their own."""
        return sum(count for state, count in self.states.items() if state.executed)

    @property
    def complete(self) -> bool:
        """Whether every planned item was executed, or left out for a stated reason."""
        explained = self.executed + self.states[State.SKIPPED]
        return explained == self.planned

    @property
    def exit_code(self) -> int:
        """0 all green; 1 a verdict failed; 3 something else is red, or nothing was executed."""
        counted = self.states - self.expected
        if counted[State.FAIL]:
            return 1
        red = any(count for state, count in counted.items() if state.red)
        if red or self.red_skips or not self.complete or not self.executed:
            return 3
        return 0


def tally(outcomes: Iterable[Outcome], expected: Container[str] = ()) -> Tally:
    """Count; every item is in exactly one state, or pending. `expected` are ids of items whose
    failure is a known issue."""
    states: Counter[State] = Counter()
    known: Counter[State] = Counter()
    planned = pending = red_skips = 0
    for outcome in outcomes:
        planned += 1
        last = outcome.last
        if last is None:
            pending += 1
            continue
        states[last.state] += 1
        known[last.state] += last.state.red and outcome.item.id in expected
        red_skips += last.skip_cause is SkipCause.PREPARATION
    return Tally(planned, states, pending, red_skips, known)


def show(console: Console, plan: Plan, outcomes: Sequence[Outcome]) -> None:
    """The summary: a row per test and configuration, then what is red."""
    counted = tally(outcomes)
    used = [state for state in State if counted.states[state]]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    table.add_column("test")
    columns = ["planned", *(state.value for state in used), *([PENDING] if counted.pending else [])]
    for name in (*columns, "seconds"):
        table.add_column(name, justify="right")
    for name, group in _groups(outcomes).items():
        table.add_row(Text(name), *_cells(group, used, bool(counted.pending)))
    table.add_section()
    table.add_row("total", *_cells(outcomes, used, bool(counted.pending)), style="bold")
    console.print(table)
    red = [(o.item, o.last) for o in outcomes if o.last is not None and o.last.red]
    for item, last in red[:_SHOWN_RED]:
        line = f"{last.state.value:7} {item.label} [{last.id}]: {last.reason}"
        console.print(Text(line, style="red"), soft_wrap=True)
    if len(red) > _SHOWN_RED:
        console.print(f"… and {len(red) - _SHOWN_RED} more", highlight=False)
    verdict = f"plan {plan.id}: {counted.executed} of {counted.planned} executed"
    style = "green" if counted.exit_code == 0 else "red"
    console.print(Text(f"{verdict}, {counted.states[State.PASS]} passed", style=f"bold {style}"))
    if not counted.complete:
        console.print(f"the rest: {PROGRAM} nightly {plan.tier} --resume", highlight=False)


def build_share(outcomes: Iterable[Outcome], preparations: Iterable[Preparation]) -> str:
    """What builds and captures cost beside the runs; empty where nothing was counted."""
    ran = sum(a.cpu_seconds or 0.0 for outcome in outcomes for a in outcome.attempts)
    prepared = sum(preparation.cpu_seconds for preparation in preparations)
    if not ran + prepared:
        return ""
    share = prepared / (ran + prepared)
    return f"builds and captures: {prepared:.0f} of {ran + prepared:.0f} s CPU ({share:.0%})"


def _groups(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(_group(outcome.item), []).append(outcome)
    return groups


def _group(item: PlanItem) -> str:
    name = item.test if item.workload is None else f"{item.test}:{item.workload}"
    return f"{name}[{item.config}]{'' if item.backend == 'rtl' else f' {item.backend}'}"


def _cells(outcomes: Sequence[Outcome], used: Sequence[State], pending: bool) -> list[Text]:
    counted = tally(outcomes)
    cells = [Text(str(counted.planned))]
    for state in used:
        count = counted.states[state]
        style = _STYLES.get(state, "bold red") if count else "dim"
        cells.append(Text(str(count), style=style))
    if pending:
        cells.append(Text(str(counted.pending), style="bold red" if counted.pending else "dim"))
    seconds = sum(attempt.seconds for outcome in outcomes for attempt in outcome.attempts)
    return [*cells, Text(f"{seconds:.0f}")]


def write_plan_junit(plan: Plan, outcomes: Sequence[Outcome], path: Path) -> None:
    """junit.xml of a plan: one test case per item."""
    suite = TestSuite(f"{plan.tier} {plan.id}")
    for name in ("revision", "seed", "command"):
        suite.add_property(name, legal(str(getattr(plan, name))))
    suite.add_testcases([_case(outcome) for outcome in outcomes])  # one by one is quadratic
    xml = JUnitXml()
    xml.add_testsuite(suite)
    xml.update_statistics()  # type: ignore[no-untyped-call]
    write_whole(xml, path)


def _case(outcome: Outcome) -> TestCase:
    item, last = outcome.item, outcome.last
    case = TestCase(legal(item.label), classname=_group(item))
    if last is None:
        case.result = [Error("planned, but not executed", type_=PENDING)]
        return case
    case.time = last.seconds
    case.system_out = legal(f"id {last.id}\nfolder {last.folder}\n")
    if last.state is State.SKIPPED and not last.red:
        case.result = [Skipped(legal(last.reason))]
    elif last.red:
        kind = Failure if last.state is State.FAIL else Error
        case.result = [kind(legal(last.reason), type_=last.state.value)]
    return case
