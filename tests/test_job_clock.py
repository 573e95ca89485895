# SPDX-License-Identifier: Apache-2.0
"""A time limit is one of the job: a loaded machine does not end a sound job, a hang always ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regress.job_clock import JobClock, cpu_seconds, credited_s
from regress.process import execute

LIMIT_S = 100.0
_BUSY = "import time\nend = time.process_time() + {seconds}\nwhile time.process_time() < end: pass"


def seconds_until_over(cores: float) -> float:
    """Wall-clock seconds until the limit, of a job that is given so many CPUs."""
    passed = 0.0
    clock = JobClock(1, LIMIT_S, now=lambda: passed, cpu=lambda _: cores * passed)
    while not clock.over():
        passed += 0.5
    return passed


@pytest.mark.parametrize(
    ("cores", "factor"),
    [(0.0, 1.0), (0.01, 1.0), (1.0, 1.0), (2.0, 1.0), (0.5, 2.0), (0.25, 4.0), (0.05, 4.0)],
)
def test_a_job_has_its_limit_on_a_loaded_machine_as_well(cores: float, factor: float) -> None:
    assert seconds_until_over(cores) == pytest.approx(factor * LIMIT_S, rel=0.06)


def test_no_time_is_credited_twice() -> None:
    assert credited_s(10.0, 25.0) == 10.0
    assert credited_s(10.0, 0.0) == 10.0
    assert credited_s(10.0, 4.0) == 4.0


def test_the_time_of_children_counts_while_they_live_and_after_they_have_ended() -> None:
    # More than half of what is asked for: neither of the two is enough, and /proc, which cuts user
    # and system time of each process down to ticks, may show less than they used.
    inner = _BUSY.format(seconds=0.3)
    waiting = f"{inner}\ninput()"
    script = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-I', '-S', '-c', {inner!r}])\n"
        f"other = subprocess.Popen([sys.executable, '-I', '-S', '-c', {waiting!r}],"
        " stdin=subprocess.PIPE)\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "other.communicate(b'\\n')"
    )
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_seconds(child.pid) >= 0.2
        deadline = time.monotonic() + 60
        while (used := cpu_seconds(child.pid)) < 0.4 and time.monotonic() < deadline:
            time.sleep(0.05)
        child.communicate(b"\n")
    assert used >= 0.4
    assert cpu_seconds(os.getpid()) >= used


@pytest.mark.parametrize("script", ["import time; time.sleep(600)", "while True: pass"])
def test_a_hang_ends_whether_it_sleeps_or_computes(tmp_path: Path, script: str) -> None:
    ended = execute([sys.executable, "-I", "-S", "-c", script], tmp_path / "log", 0.5, print)
    assert ended.timed_out
    assert ended.seconds < 60


def test_a_closed_output_does_not_hide_a_hang(tmp_path: Path) -> None:
    script = "import os, time; os.close(1); time.sleep(600)"
    ended = execute([sys.executable, "-I", "-S", "-c", script], tmp_path / "log", 0.5, print)
    assert ended.timed_out
