# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim test` stops at nothing, counts everything, and fails when anything did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from junitparser import TestCase, TestSuite
from rich.console import Console
from test_report import _failing, _result, _row

from driver.errors import InfrastructureError, InputError
from driver.results import RESULT_FILE, OpRow, write_json
from regress import steps
from regress.steps import Step, Verdict, run_steps

Groups = dict[str, Callable[[], Iterator[Step]]]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Groups:
    """No steps yet; logs go to a folder of their own."""
    table: Groups = {name: lambda: iter(()) for name in steps.GROUPS}
    monkeypatch.setattr(steps, "_GROUP_STEPS", table)
    monkeypatch.setattr(steps, "LOGS", tmp_path)
    return table


def _run(only: Sequence[str] = ()) -> tuple[int, str]:
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        code = run_steps(console, only, live=False)
    return code, capture.get()


def _step(name: str, *verdict: object) -> Step:
    return Step("some", name, lambda: Verdict(*verdict))  # type: ignore[arg-type]


def _raise() -> Verdict:
    raise InfrastructureError("no usable Verilator")


def test_everything_passing_exits_0_and_ends_with_the_count(groups: Groups) -> None:
    groups["lint"] = lambda: iter([_step("a", 1, 0), _step("b", 1, 0)])
    groups["rtl"] = lambda: iter([_step("c", 40, 0)])
    code, out = _run()
    assert code == 0
    assert out.splitlines()[-1] == "42 passed, 0 failed"


def test_a_failure_stops_nothing_and_shows_why(groups: Groups) -> None:
    groups["lint"] = lambda: iter([_step("first", 0, 1, "a.py: wrong"), _step("second", 3, 2)])
    groups["rtl"] = lambda: iter([Step("rtl", "third", _raise), _step("fourth", 5, 0)])
    code, out = _run()
    assert code == 1
    for text in (
        "FAIL some: first",
        "     a.py: wrong",
        "no usable Verilator",
        "ok   some: fourth",
    ):
        assert text in out
    assert out.splitlines()[-1] == "8 passed, 4 failed"


def test_steps_that_cannot_be_listed_are_a_failure(groups: Groups) -> None:
    def broken() -> Iterator[Step]:
        _raise()
        yield _step("never", 1, 0)

    groups["rtl"] = broken
    groups["lint"] = lambda: iter([_step("a", 1, 0)])
    code, out = _run()
    assert code == 1
    assert out.splitlines()[-1] == "1 passed, 1 failed"


def test_nothing_run_is_no_pass(groups: Groups) -> None:
    assert _run()[0] == 1


def test_groups_can_be_picked(groups: Groups) -> None:
    groups["lint"] = lambda: iter([_step("a", 1, 0)])
    groups["rtl"] = lambda: iter([_step("b", 0, 1)])
    assert _run(["lint"])[0] == 0
    with pytest.raises(InputError, match="got x, expected one of lint, types, gen-check, python"):
        _run(["x"])


def test_pytest_is_counted_from_its_report_and_a_skip_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    suite = tmp_path / "test_it.py"
    suite.write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n"
        "@pytest.mark.skip\ndef test_c(): pass\n"
    )
    monkeypatch.setattr(steps, "LOGS", tmp_path)
    real = steps._command

    def command(name: str, words: Sequence[str]) -> tuple[int, str]:
        report = words[-1]
        return real(name, [sys.executable, "-m", "pytest", "-p", "no:xdist", report, str(suite)])

    monkeypatch.setattr(steps, "_command", command)
    verdict = steps._pytest()
    assert (verdict.passed, verdict.failed) == (1, 2)
    assert "1 tests skipped" in verdict.text
    assert {note.rpartition("::")[2] for note in verdict.notes} == {"test_a", "test_b", "test_c"}


def test_the_ten_slowest_tests_are_shown_in_order_also_when_all_pass(groups: Groups) -> None:
    suite = TestSuite("s")
    for number in range(12):
        case = TestCase(f"test_{number}", classname="tests.test_x", time=float(number % 7))
        suite.add_testcase(case)
    notes = steps._slowest([suite])
    assert len(notes) == 10
    assert notes[0] == "   6.0 s  tests.test_x::test_6"
    groups["python"] = lambda: iter([_step("pytest", 12, 0, "", notes)])
    code, out = _run()
    assert code == 0
    assert all(note in out for note in notes)


def test_pytest_that_leaves_no_report_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(steps, "LOGS", tmp_path)
    monkeypatch.setattr(steps, "_command", lambda name, words: (3, "died"))
    assert steps._pytest() == Verdict(0, 1, "died")


@pytest.mark.parametrize(
    ("rows", "status", "counts"),
    [
        ((_row(0), _row(1), _row(2, where="cpu")), 0, (2, 0)),
        ((_row(0), _failing(1)), 1, (1, 1)),
        ((_row(0),), 3, (1, 1)),
    ],
)
def test_an_rtl_test_is_counted_by_ops_on_the_npu(
    rows: tuple[OpRow, ...],
    status: int,
    counts: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    write_json(tmp_path / RESULT_FILE, _result(*rows))
    monkeypatch.setattr(steps, "_command", lambda name, words: (status, "text"))
    verdict = steps._run_rtl("matmul", "default", tmp_path)
    assert (verdict.passed, verdict.failed) == counts


def test_an_rtl_test_without_a_result_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(steps, "_command", lambda name, words: (0, ""))
    verdict = steps._run_rtl("matmul", "default", tmp_path)
    assert (verdict.passed, verdict.failed) == (0, 1)
    assert RESULT_FILE in verdict.text


def test_a_command_that_hangs_is_ended_and_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(steps, "LOGS", tmp_path)
    monkeypatch.setattr(steps, "_LIMIT_S", 1.0)
    status, text = steps._command("x", [sys.executable, "-c", "import time; time.sleep(60)"])
    assert status != 0
    assert "x was stopped after its time limit of 1 s" in text
