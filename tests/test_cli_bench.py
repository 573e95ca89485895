# SPDX-License-Identifier: Apache-2.0
"""Figures of merit are taken in processes of their own and never decide a verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from driver.errors import InfrastructureError, InputError
from regress import bench
from regress.bench import Figure, MeasuredFigure, run_bench
from regress.nightly.overhead import MEASUREMENTS
from tb.bench.measure import interleaved, process_cpu_seconds, summary, timed

MODULE = "regress.nightly.overhead"
FAKE = """
import sys
name, rounds = sys.argv[1:]
print('{"event": "note", "text": "as %s rounds"}' % rounds)
if name == "dying":
    sys.exit("no simulator")
print("chatter")
print('{"value": 0.5, "spread": 0.1}' if name != "odd" else '{"value": "x"}')
if name == "late":
    sys.exit("the simulator died at the end")
"""
FIGURES = {
    name: Figure(name, f"title of {name}", 1.0, better)
    for name, better in (
        ("good", "lower"),
        ("dying", "higher"),
        ("odd", "higher"),
        ("late", "higher"),
    )
}


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    monkeypatch.setattr(bench, "RUNNER", (sys.executable, str(script)))
    monkeypatch.setattr(bench, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(bench, "measurable", lambda: FIGURES)


def _run(names: list[str], out: Path) -> tuple[int, str]:
    console = Console(width=120, no_color=True)
    with console.capture() as capture:
        code = run_bench(console, names, 3, out)
    return code, capture.get()


def test_a_figure_is_printed_and_written(tmp_path: Path) -> None:
    code, out = _run(["good"], tmp_path / "out")
    assert code == 0
    assert "as 3 rounds" in out
    assert "title of good" in out
    assert json.loads((tmp_path / "out" / "bench.json").read_text()) == [
        {
            "name": "good",
            "aim": 1.0,
            "better": "lower",
            "unit": "ratio",
            "value": 0.5,
            "spread": 0.1,
        }
    ]


def test_a_figure_that_cannot_be_taken_does_not_stop_the_others(tmp_path: Path) -> None:
    code, out = _run(["dying", "odd", "late", "good"], tmp_path / "out")
    assert code == 3
    assert "not measured: dying ended with status 1: no simulator" in out
    assert "not measured: odd" in out
    assert "not measured: late" in out
    assert len(json.loads((tmp_path / "out" / "bench.json").read_text())) == 1


def test_an_unknown_figure_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got x, expected one of good, dying, odd, late"):
        _run(["x"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("better", "value", "reached"),
    [("higher", 1.0, True), ("higher", 0.9, False), ("lower", 1.0, True), ("lower", 1.1, False)],
)
def test_an_aim_is_reached_from_its_own_side(better: str, value: float, reached: bool) -> None:
    figure = Figure("x", "x", 1.0, better)  # type: ignore[arg-type]
    assert bench.reached(figure, value) is reached


def test_every_figure_of_the_table_has_its_measurement() -> None:
    folder = Path(__file__).parents[1] / "tb" / "bench"
    figures = {figure.name for figure in bench.FIGURES if figure.module is None}
    own = {path.stem for path in folder.glob("*.py") if "def measure(" in path.read_text()}
    assert own == figures
    others = {figure.name for figure in bench.FIGURES if figure.module == MODULE}
    assert others == set(MEASUREMENTS)
    assert len(figures | others) == len(bench.FIGURES)


def test_a_value_must_be_one() -> None:
    with pytest.raises(InfrastructureError, match="odd ended with status 0"):
        bench.measure(FIGURES["odd"], 3, lambda text: None)
    assert MeasuredFigure(value=1.0, spread=0.0).value == 1.0


def test_the_two_sides_of_a_ratio_take_turns() -> None:
    order: list[str] = []
    seconds = iter([9.0, 9.0, 4.0, 2.0, 1.0, 3.0, 10.0, 1.0])

    def side(name: str) -> float:
        order.append(name)
        return next(seconds)

    value = interleaved(lambda: side("a"), lambda: side("b"), 3)
    assert order == ["a", "b", "a", "b", "b", "a", "a", "b"]
    assert (value.value, value.spread) == (3.0, 8.0)  # of 4/2, 3/1 and 10/1


def test_summary_and_timing() -> None:
    assert summary([1.0, 5.0, 2.0]).value == 2.0
    ticks = iter([10.0, 12.5])
    assert timed(lambda: None, lambda: next(ticks)) == 2.5


def test_the_cpu_time_of_a_process_is_what_it_says_itself() -> None:
    script = (
        "import time\n"
        "while time.process_time() < 0.05: pass\n"
        "print(time.process_time_ns(), flush=True)\n"
        "input()\n"
        "print(time.process_time_ns(), flush=True)\n"
        "input()"
    )
    command = [sys.executable, "-I", "-S", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as own:
        assert own.stdin is not None
        assert own.stdout is not None
        first = int(own.stdout.readline())
        taken = round(process_cpu_seconds(own.pid) * 1e9)
        own.stdin.write("\n")
        own.stdin.flush()
        assert 50_000_000 <= first <= taken <= int(own.stdout.readline())
        own.communicate("\n")
