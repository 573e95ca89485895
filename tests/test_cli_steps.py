# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim test` stops at nothing, counts everything, and fails when anything did."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from junitparser import TestCase, TestSuite
from rich.console import Console
from test_report import _failing, _result, _row

from driver.errors import InfrastructureError, InputError
from driver.results import RESULT_FILE, OpRow, write_json
from regress.check import steps
from regress.check.runner import run_steps
from regress.check.steps import PHASES, CheckResult, CheckStep, Commands

Groups = dict[str, Callable[[], Iterator[CheckStep]]]


class FakeCommands(Commands):
    """Answers instead of running anything."""

    def __init__(self, logs: Path, status: int, text: str) -> None:
        super().__init__(logs, threading.Event())
        self._answer = status, text

    def run(self, name: str, command: Sequence[str]) -> tuple[int, str]:
        return self._answer


@pytest.fixture
def groups() -> Groups:
    """No steps yet."""
    return {name: lambda: iter(()) for phase in PHASES for name, _ in phase}


def _run(groups: Groups, logs: Path, only: Sequence[str] = ()) -> tuple[int, str]:
    console = Console(width=100, no_color=True)
    phases = [((name, lister),) for name, lister in groups.items()]
    with console.capture() as capture:
        code = run_steps(console, only, live=False, phases=phases, logs=logs)
    return code, capture.get()


def _step(name: str, *result: object) -> CheckStep:
    return CheckStep("some", name, lambda _: CheckResult(*result))  # type: ignore[arg-type]


def _raise(_: Commands) -> CheckResult:
    raise InfrastructureError("no usable Verilator")


def test_everything_passing_exits_0_and_ends_with_the_count(groups: Groups, tmp_path: Path) -> None:
    groups["lint"] = lambda: iter([_step("a", 1, 0), _step("b", 1, 0)])
    groups["rtl"] = lambda: iter([_step("c", 40, 0)])
    code, out = _run(groups, tmp_path)
    assert code == 0
    assert out.splitlines()[-1] == "42 passed, 0 failed"


def _break(_: Commands) -> CheckResult:
    raise FileNotFoundError(2, "No such file or directory", "verilator")


def test_a_step_that_checks_nothing_or_breaks_fails_and_stops_nothing(
    groups: Groups, tmp_path: Path
) -> None:
    groups["lint"] = lambda: iter([_step("empty", 0, 0, "no files"), _step("second", 3, 0)])
    groups["rtl"] = lambda: iter([CheckStep("rtl", "third", _break), _step("fourth", 5, 0)])
    code, out = _run(groups, tmp_path)
    assert code == 1
    assert "FAIL some: empty: nothing was checked" in out
    assert "FAIL rtl: third: FileNotFoundError: [Errno 2] No such file" in out
    assert out.splitlines()[-1] == "8 passed, 2 failed"


def test_a_failure_stops_nothing_and_shows_why(groups: Groups, tmp_path: Path) -> None:
    groups["lint"] = lambda: iter([_step("first", 0, 1, "a.py: wrong"), _step("second", 3, 2)])
    groups["rtl"] = lambda: iter([CheckStep("rtl", "third", _raise), _step("fourth", 5, 0)])
    code, out = _run(groups, tmp_path)
    assert code == 1
    for text in (
        "FAIL some: first",
        "     a.py: wrong",
        "no usable Verilator",
        "ok   some: fourth",
    ):
        assert text in out
    assert out.splitlines()[-1] == "8 passed, 4 failed"
    assert out.splitlines()[-4] == "FAIL some: first: a.py: wrong"


def test_steps_that_cannot_be_listed_are_a_failure(groups: Groups, tmp_path: Path) -> None:
    def broken() -> Iterator[CheckStep]:
        raise InfrastructureError("no usable Verilator")
        yield _step("never", 1, 0)

    groups["rtl"] = broken
    groups["lint"] = lambda: iter([_step("a", 1, 0)])
    code, out = _run(groups, tmp_path)
    assert code == 1
    assert out.splitlines()[-1] == "1 passed, 1 failed"


def test_nothing_run_is_no_pass(groups: Groups, tmp_path: Path) -> None:
    assert _run(groups, tmp_path)[0] == 1


def test_groups_can_be_picked(groups: Groups, tmp_path: Path) -> None:
    groups["lint"] = lambda: iter([_step("a", 1, 0)])
    groups["rtl"] = lambda: iter([_step("b", 0, 1)])
    assert _run(groups, tmp_path, ["lint"])[0] == 0
    with pytest.raises(InputError, match="got x, expected one of lint, types, gen-check, unit"):
        _run(groups, tmp_path, ["x"])


def test_pytest_is_counted_from_its_report_and_a_skip_is_a_failure(tmp_path: Path) -> None:
    suite = tmp_path / "test_it.py"
    suite.write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n"
        "@pytest.mark.skip\ndef test_c(): pass\n"
    )

    class OnlyThisSuite(Commands):
        def run(self, name: str, command: Sequence[str]) -> tuple[int, str]:
            pytest_run, report = list(command[:3]), command[-1]
            return super().run(name, [*pytest_run, "-p", "no:xdist", report, str(suite)])

    result = steps._pytest(OnlyThisSuite(tmp_path, threading.Event()))
    assert (result.passed, result.failed) == (1, 2)
    assert "1 tests skipped" in result.text
    first, second, _ = result.text.split("\n", 2)
    assert first.endswith("test_it::test_b: assert 0")
    assert second.endswith("test_it::test_c: unconditional skip")
    assert {note.rpartition("::")[2] for note in result.notes} == {"test_a", "test_b", "test_c"}


def test_the_ten_slowest_tests_are_shown_in_order_also_when_all_pass(
    groups: Groups, tmp_path: Path
) -> None:
    suite = TestSuite("s")
    for number in range(12):
        case = TestCase(f"test_{number}", classname="tests.test_x", time=float(number % 7))
        suite.add_testcase(case)
    notes = steps._slowest([suite])
    assert len(notes) == 10
    assert notes[0] == "   6.0 s  tests.test_x::test_6"
    groups["python"] = lambda: iter([_step("pytest", 12, 0, "", notes)])
    code, out = _run(groups, tmp_path)
    assert code == 0
    assert all(note in out for note in notes)


def test_pytest_that_leaves_no_report_is_a_failure(tmp_path: Path) -> None:
    assert steps._pytest(FakeCommands(tmp_path, 3, "died")) == CheckResult(0, 1, "died")


def test_steps_of_a_phase_run_at_once(groups: Groups, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=30)

    def meet(_: Commands) -> CheckResult:
        both.wait()
        return CheckResult(1, 0)

    groups["rtl"] = lambda: iter([CheckStep("rtl", name, meet) for name in "ab"])
    code, out = _run(groups, tmp_path)
    assert code == 0
    assert out.splitlines()[-1] == "2 passed, 0 failed"


def test_an_interrupt_ends_the_commands_that_run(groups: Groups, tmp_path: Path) -> None:
    started, ended = tmp_path / "started", []

    def sleeps(commands: Commands) -> CheckResult:
        code = f"import pathlib, time; pathlib.Path({str(started)!r}).touch(); time.sleep(600)"
        try:
            commands.run("sleeps", [sys.executable, "-c", code])
        except steps.StepsEndedError:
            ended.append("sleeps")
            raise
        return CheckResult(1, 0)

    def interrupt(_: Commands) -> CheckResult:
        while not started.exists():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        return CheckResult(1, 0)

    steps_at_once = [CheckStep("rtl", "a", sleeps), CheckStep("rtl", "b", interrupt)]
    groups["rtl"] = lambda: iter(steps_at_once)
    with pytest.raises(KeyboardInterrupt):
        _run(groups, tmp_path)
    assert ended == ["sleeps"]


@pytest.mark.parametrize(
    ("rows", "status", "counts"),
    [
        ((_row(0), _row(1), _row(2, where="cpu")), 0, (2, 0)),
        ((_row(0), _failing(1)), 1, (1, 1)),
        ((_row(0),), 3, (1, 1)),
    ],
)
def test_an_rtl_test_is_counted_by_ops_on_the_npu(
    rows: tuple[OpRow, ...], status: int, counts: tuple[int, int], tmp_path: Path
) -> None:
    write_json(tmp_path / "matmul-default" / RESULT_FILE, _result(*rows))
    result = steps._run_rtl("matmul", "default", FakeCommands(tmp_path, status, "text"))
    assert (result.passed, result.failed) == counts


def test_an_rtl_test_without_a_result_is_a_failure(tmp_path: Path) -> None:
    result = steps._run_rtl("matmul", "default", FakeCommands(tmp_path, 0, ""))
    assert (result.passed, result.failed) == (0, 1)
    assert RESULT_FILE in result.text


def test_a_command_that_hangs_is_ended_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(steps, "_LIMIT_S", 1.0)
    commands = Commands(tmp_path, threading.Event())
    status, text = commands.run("x", [sys.executable, "-c", "import time; time.sleep(60)"])
    assert status != 0
    assert "x was stopped after its time limit of 1 s" in text
