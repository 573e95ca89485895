# SPDX-License-Identifier: Apache-2.0
"""A run shows that it is alive: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import time

import pytest
from rich.console import Console
from test_report import _failing, _row

from regress import progress
from regress.progress import ProgressBar


def _watched(terminal: bool, monkeypatch: pytest.MonkeyPatch, every_s: float) -> str:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", every_s)
    console = Console(width=100, force_terminal=terminal, no_color=True)
    with console.capture() as capture, ProgressBar(console, "matmul") as watched:
        watched.tick()
        watched.plan(4)
        watched.op(_row(0))
        watched.note("[b]compiling[/b]")
        watched.op(_failing(1))
        watched.tick()
    return capture.get()


def test_a_log_gets_notes_failures_and_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = _watched(False, monkeypatch, 0.0).splitlines()
    assert "[b]compiling[/b]" in lines
    assert any(line.startswith("op 1 aten.mm.default") and "blame rtl" in line for line in lines)
    assert lines[0] == "matmul: 0/? ops"
    assert lines[-1].startswith("matmul: 2/4 ops, 1 failed, 0:00 left")


def test_a_log_is_not_flooded(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _watched(False, monkeypatch, 1e9)
    assert "ops" not in shown
    assert "compiling" in shown


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _watched(True, monkeypatch, 0.0)
    assert "2/4" in shown
    assert "1 failed" in shown
    assert "matmul: 2/4 ops" not in shown


def test_the_time_left_follows_the_pace() -> None:
    watched = ProgressBar(Console(quiet=True), "x")
    assert watched.left() == ""
    watched.plan(100)
    assert watched.left() == ""
    watched.op(_row(0))
    watched._start = time.monotonic() - 2.0
    assert watched.left() == "3:18 left"
    watched._start -= 10.0
    watched._ended -= 10.0
    assert watched.left() == "3:16 left"  # the op at hand takes long
    watched.plan(2)
    assert watched.left() == "the last takes longer than the others"
    watched.plan(1)
    assert watched.left() == ""  # what goes on now is no op


def test_a_build_before_the_first_op_is_not_of_its_pace() -> None:
    watched = ProgressBar(Console(quiet=True), "x")
    watched.plan(100)
    watched._start -= 1000.0
    watched.note("building x: compiled 90 of 96 changed files")
    watched.op(_row(0))
    assert watched.left() == "0:00 left"
    watched.note("another line")
    watched._start -= 99.0
    assert watched.left() != "0:00 left"
