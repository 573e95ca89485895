# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim test`: runs steps two at once and shows what came of them.

Nothing stops at a failure; the last line counts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.text import Text

from driver.errors import InputError, NpuError
from regress.check.steps import (
    CORES,
    PHASES,
    CheckResult,
    CheckStep,
    Commands,
    Phase,
    StepLister,
    StepsEndedError,
)
from regress.console import plain_table, print_line
from regress.paths import OUT
from regress.process import terminable

LOGS = OUT / "test"
_SHOWN_LINES = 40

_Row = tuple[CheckStep, CheckResult, float]


def run_steps(
    console: Console,
    only: Sequence[str],
    live: bool,
    *,
    phases: Sequence[Phase] = PHASES,
    logs: Path = LOGS,
) -> int:
    """Run the steps of the groups `only` (all when empty), with logs in a folder. 0, or 1 when
    anything failed."""
    groups = dict.fromkeys(group for phase in phases for group, _ in phase)
    unknown = [group for group in only if group not in groups]
    if unknown:
        raise InputError("command line", "steps", unknown[0], f"one of {', '.join(groups)}")
    logs.mkdir(parents=True, exist_ok=True)
    rows: list[_Row] = []
    start = time.monotonic()
    with terminable():
        for phase in phases:
            listers = [(group, lister) for group, lister in phase if not only or group in only]
            steps = [step for group, lister in listers for step in _listed(group, lister)]
            for row in _finished(console, steps, live, logs):
                rows.append(row)
                _show_step(console, *row)
    return _show_summary(console, rows, time.monotonic() - start)


def _listed(group: str, lister: StepLister) -> list[CheckStep]:
    """A group's steps; when they cannot even be listed, that is the one step that fails."""
    try:
        return list(lister())
    except NpuError as error:
        failure = CheckResult(0, 1, str(error))
        return [CheckStep(group, "list", lambda _: failure)]


def _finished(
    console: Console, steps: Sequence[CheckStep], live: bool, logs: Path
) -> Iterator[_Row]:
    """The steps in the order in which they end. What runs is ended when this is left."""
    stop = threading.Event()
    command = Commands(logs, stop)
    with ThreadPoolExecutor(CORES) as pool:
        try:
            futures = {pool.submit(_timed, step, command): step for step in steps}
            for future in as_completed(futures):
                yield future.result()
                if live:
                    _show_running(console, futures)
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def _timed(step: CheckStep, command: Commands) -> _Row:
    """The step's result; an error of the machinery is a failure of the step, not the end, and so is
    a step that checked nothing."""
    start = time.monotonic()
    try:
        result = step.run(command)
    except NpuError as error:
        result = CheckResult(0, 1, str(error))
    except StepsEndedError:
        raise
    except Exception as error:
        result = CheckResult(0, 1, f"{type(error).__name__}: {error}")
    if not result.passed and not result.failed:
        result = CheckResult(0, 1, f"nothing was checked\n{result.text}")
    return step, result, time.monotonic() - start


def _show_running(console: Console, futures: dict[Future[_Row], CheckStep]) -> None:
    names = [step.name for future, step in futures.items() if future.running()]
    if names:
        console.print(f"{' and '.join(names)} …", end="\r", highlight=False)


def _show_step(console: Console, step: CheckStep, result: CheckResult, seconds: float) -> None:
    state = "FAIL" if result.failed else "ok"
    colour = "bold red" if result.failed else "green"
    line = Text(f"{state:5}", style=colour)
    line.append(f"{step.group}: {step.name}  {seconds:.1f} s", style="default not bold")
    console.print(line, soft_wrap=True, highlight=False)
    if result.failed:
        lines = result.text.splitlines()
        more = len(lines) - _SHOWN_LINES
        for text in [*lines[:_SHOWN_LINES], *([f"… and {more} more lines"] if more > 0 else [])]:
            print_line(console, f"     {text}")
    for note in result.notes:
        print_line(console, f"     {note}")


def _show_summary(console: Console, rows: list[_Row], seconds: float) -> int:
    table = plain_table()
    for name in ("group", "passed", "failed", "seconds"):
        table.add_column(name, justify="left" if name == "group" else "right")
    for group in dict.fromkeys(step.group for step, _, _ in rows):
        own = [(result, lasted) for step, result, lasted in rows if step.group == group]
        failed = sum(result.failed for result, _ in own)
        table.add_row(
            group,
            str(sum(result.passed for result, _ in own)),
            Text(str(failed), style="bold red" if failed else ""),
            f"{sum(lasted for _, lasted in own):.0f}",
        )
    passed = sum(result.passed for _, result, _ in rows)
    failed = sum(result.failed for _, result, _ in rows)
    console.print()
    console.print(table)
    minutes, rest = divmod(round(seconds), 60)
    console.print(f"\nin {minutes} min {rest} s", highlight=False)
    for step, result, _ in rows:
        if result.failed:
            why = result.text.partition("\n")[0]
            print_line(console, f"FAIL {step.group}: {step.name}: {why}")
    console.print(f"{passed} passed, {failed} failed", highlight=False)
    return 1 if failed or not passed else 0
