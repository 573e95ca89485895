# SPDX-License-Identifier: Apache-2.0
"""pytest's tests with one marker as a test of the tiers: each of them is a check with its own row.

The checks are numbered in pytest's order, which changes with the sources only.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.errors import InfrastructureError, InputError
from driver.results import OpEvent, OpRow, RunResult, RunSpec
from tb.checks import check_row, checks_result, picked
from tb.ops.runner import RunObserver

ROOT = Path(__file__).resolve().parents[1]
_COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
_DETAIL_CHARACTERS = 400
_SLOWEST = 20
"""So many tests are named in the log with the time that they took."""
RUN_SEED = pytest.StashKey[int]()
"""In pytest's configuration: the seed of the run that its tests are the checks of."""


class _Recorder:
    """A plug-in of pytest: picks the checks of `spec`, and makes a row of each report."""

    def __init__(self, spec: RunSpec, progress: RunObserver) -> None:
        self._spec = spec
        self._progress = progress
        self._stdout = sys.stdout
        self._numbers: dict[str, int] = {}
        self._failure: str | None = None
        self.rows: list[OpRow] = []
        self.refused: InputError | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        """Tell the tests the seed."""
        config.stash[RUN_SEED] = self._spec.seed

    @pytest.hookimpl(trylast=True)  # after -m has removed the others
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what the spec asks for."""
        if not items:  # pytest says why
            return
        try:
            numbers = picked(self._spec, len(items))
        except InputError as error:
            self.refused, numbers = error, []
        items[:] = [items[number] for number in numbers]
        self._numbers = dict(zip((item.nodeid for item in items), numbers, strict=True))
        with self._events():
            self._progress.plan(len(items))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and tear-down of a check; the first that does not pass is its failure."""
        if not report.passed and self._failure is None:
            self._failure = _why(report)
        if report.when != "teardown":
            return
        name = report.nodeid.rpartition("::")[2]
        number, failure = self._numbers[report.nodeid], self._failure
        row = check_row(number, name, report.nodeid, 1, failure, where="cmodel", blame="unknown")
        self.rows.append(row)
        self._failure = None
        with self._events():
            self._progress.op(OpEvent.of(row))

    @contextlib.contextmanager
    def _events(self) -> Iterator[None]:
        """stdout as it is outside pytest: events go there, pytest's own lines to the log."""
        with contextlib.redirect_stdout(self._stdout):
            yield


def _why(report: pytest.TestReport) -> str:
    """The last line of a failure; the log has it whole."""
    if report.skipped:
        return "skipped: a skipped test checks nothing"
    lines = report.longreprtext.strip().splitlines() or ["no message"]
    said = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return f"{report.when}: {(said or lines)[0]}"[:_DETAIL_CHARACTERS]


def run_pytest(
    spec: RunSpec, progress: RunObserver, marker: str, folder: Path | None = None
) -> RunResult:
    """Run the tests below `folder` (the project's if None) that have `marker`, one row each.

    InputError: a check that does not exist. InfrastructureError: pytest could not collect or run
    them.
    """
    recorder = _Recorder(spec, progress)
    options = ["-c", str(ROOT / "pyproject.toml"), "-m", marker, "-p", "no:cacheprovider"]
    options.append(f"--durations={_SLOWEST}")
    # A job has its own limit of time, which may be longer than that of the project's tests.
    options += ["-o", f"faulthandler_timeout={spec.timeout_s}"]
    with contextlib.redirect_stdout(sys.stderr):
        code = pytest.main([*options, str(folder or ROOT / "tests")], plugins=[recorder])
    if recorder.refused is not None:
        raise recorder.refused
    if code not in _COMPLETE or not recorder.rows:
        raise InfrastructureError(f"pytest ended with {pytest.ExitCode(code).name}; see the log")
    return checks_result(spec, recorder.rows)
