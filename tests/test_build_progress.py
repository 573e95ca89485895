# SPDX-License-Identifier: Apache-2.0
"""What a build says while it lasts: at once, then every ten seconds, with the time left."""

from __future__ import annotations

from pathlib import Path

import pytest

from regress.nightly.prepare import CAPSULE_STEP, PrepareStep, do_step
from regress.paths import CONFIG_FILE
from tb.sim.progress import BuildProgress

SECONDS = [0.0]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_it_speaks_at_once_and_then_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    progress = BuildProgress("small (check)", lambda: SECONDS[0])
    for at, doing in ((1.0, "a"), (5.0, "b"), (10.9, "c"), (11.0, "d"), (20.0, "e"), (21.5, "f")):
        SECONDS[0] = at
        progress(doing)
    assert said(caplog) == [
        "building small (check): a",
        "building small (check): d, 11 s",
        "building small (check): f, 22 s",
    ]


def test_the_time_left_goes_by_the_text_compiled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    SECONDS[0] = 0.0
    progress = BuildProgress("x", lambda: SECONDS[0])
    progress("Verilator reads the RTL")
    for at, done, share in ((20.0, 0, 0.0), (40.0, 1, 0.04), (60.0, 2, 0.25), (100.0, 9, 1.0)):
        SECONDS[0] = at
        progress.compiled(done, 9, share)
    assert said(caplog)[1:] == [
        "building x: compiled 0 of 9 changed files, 20 s",
        "building x: compiled 1 of 9 changed files, 40 s",
        "building x: compiled 2 of 9 changed files, 2:00 left, 60 s",
        "building x: compiled 9 of 9 changed files, 0:00 left, 100 s",
    ]


def test_a_night_tells_what_a_step_says_while_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys, time; print('half done', file=sys.stderr, flush=True); time.sleep(2)"
    answer = 'print(\'{"folder": "f", "key": "k", "cached": false}\')'
    command = ["/usr/bin/env", "python3", "-c", f"{program}; {answer}"]
    monkeypatch.setattr(PrepareStep, "command", lambda *_: command)
    heard: list[str] = []
    step = PrepareStep(CAPSULE_STEP, "lenet", "1")
    result, cached = do_step(step, CONFIG_FILE, tmp_path, lambda: True, heard.append)
    assert (result.ok, result.detail, cached, heard) == (True, "k", False, ["half done"])
