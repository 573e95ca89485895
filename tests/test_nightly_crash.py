# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment, a nightly loses nothing it has acknowledged and runs nothing twice.

Each round starts or resumes the same plan in a process of its own and kills, at a random moment,
the runner, the process of a job, or its simulator. NPU_CRASH_ROUNDS sets how many (200 in the long
mode; a few by default).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from nightly_host import go, item_results, spec_of, states, write_config

from regress.nightly.job import JobSpec, run_job
from regress.results.model import JobStatus, PlannedJob
from regress.results.store import Store

HOST = Path(__file__).with_name("nightly_host.py")
ROUNDS = int(os.environ.get("NPU_CRASH_ROUNDS", "6"))
VICTIMS = ("runner", "job", "simulator")


def _start(config: Path, folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(HOST), str(config), str(folder), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _below(pid: int, command: bytes) -> list[int]:
    """The processes below another whose command line holds these bytes."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                if command in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
                found += _below(child, command)
    return found


def _victim(runner: int, kind: str) -> int | None:
    """The process to kill; None when there is none of that kind just now."""
    with contextlib.suppress(OSError):
        jobs = _below(runner, b"nightly_fake.py")
        if kind == "runner":
            return runner
        if kind == "job":
            return jobs[0] if jobs else None
        simulators = _below(runner, b"time.sleep")
        return simulators[0] if simulators else None
    return None


def _round(runner: subprocess.Popen[str], kind: str, after_s: float, watch_s: float) -> set[str]:
    """One kill after so long; what survives it is watched for a while, and then killed as well.
    The ids that were acknowledged."""
    deadline = time.monotonic() + 20
    time.sleep(after_s)
    while runner.poll() is None and time.monotonic() < deadline:
        pid = _victim(runner.pid, kind)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.005)
    with contextlib.suppress(subprocess.TimeoutExpired):
        runner.wait(watch_s)
    runner.kill()
    said, errors = runner.communicate(timeout=60)
    assert "Traceback" not in errors, errors
    return {line.split()[1] for line in said.splitlines() if line.startswith("ack ")}


@pytest.mark.broad
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice(tmp_path: Path) -> None:
    dice = random.Random(1)
    config = write_config(tmp_path / "c.yaml", {"simulating": 4 * ROUNDS, "quick": 4 * ROUNDS})
    folder = tmp_path / "s"
    acked: set[str] = set()
    for number in range(ROUNDS):
        kind = VICTIMS[number % len(VICTIMS)]
        options = ["--resume"] if number and _planned(folder) else []
        runner = _start(config, folder, *options)
        acked |= _round(runner, kind, dice.uniform(0.3, 2.0), dice.uniform(0.0, 1.0))
        _check(folder, acked)
    assert acked
    while any(state in ("", "killed") for state in states(folder).values()):
        go(config, folder, resume=True)
    _check(folder, acked)
    while "error" in states(folder).values():
        go(config, folder, resume=True, only_failed=True)
    assert set(states(folder).values()) == {"pass"}


def _planned(folder: Path) -> bool:
    with Store.open(folder) as store:
        return bool(store.plans())


def _check(folder: Path, acked: set[str]) -> None:
    """What was acknowledged is there once; an item that has ended by itself was not run again."""
    if not _planned(folder):
        assert not acked
        return
    with Store.open(folder) as store:
        (plan,) = store.plans()
        attempts = store.attempts(plan.id)
        ids = Counter(attempt.id for attempt in attempts)
        assert acked <= set(ids)
        assert set(ids.values()) <= {1}
        executed = Counter(a.item_id for a in attempts if a.status.executed)
        assert set(executed.values()) <= {1}
        for attempt in attempts:
            for artefact in attempt.artefacts:
                assert store.path(artefact.path).stat().st_size == artefact.size_bytes


@pytest.mark.parametrize(
    ("kind", "state"), [("job", JobStatus.KILLED), ("simulator", JobStatus.ERROR)]
)
def test_a_process_that_is_killed_has_its_state(
    tmp_path: Path, kind: str, state: JobStatus
) -> None:
    config = write_config(tmp_path / "c.yaml", {"simulating": 1})
    _round(_start(config, tmp_path / "s"), kind, 0.0, 30.0)
    (item_result,) = item_results(tmp_path / "s")
    assert item_result.last is not None
    assert item_result.last.status is state


def test_ctrl_c_once_drains_and_resume_runs_the_rest(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"slow": 8})
    runner = _start(config, tmp_path / "s")
    assert runner.stdout is not None
    runner.stdout.readline()  # the first acknowledgement
    runner.send_signal(signal.SIGINT)
    _, errors = runner.communicate(timeout=60)
    assert runner.returncode == 130, errors
    assert "no new jobs" in errors
    assert "the rest: " in errors
    found = states(tmp_path / "s")
    assert set(found.values()) == {"pass", ""}  # what ran came to its end
    ran = sum(state == "pass" for state in found.values())
    code, shown = go(config, tmp_path / "s", resume=True, jobs=4)
    assert code == 0
    assert f"{8 - ran} jobs" in shown
    assert set(states(tmp_path / "s").values()) == {"pass"}


def test_ctrl_c_twice_stops_at_once(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"hanging": 3})
    runner = _start(config, tmp_path / "s")
    while not list((tmp_path / "s").glob("plans/*/*/1/child")):
        time.sleep(0.02)
        assert runner.poll() is None
    runner.send_signal(signal.SIGINT)
    time.sleep(0.3)
    started = time.monotonic()
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=60)
    assert time.monotonic() - started < 20
    assert runner.returncode == 130
    found = [item_result.last for item_result in item_results(tmp_path / "s")]
    assert {last.status for last in found if last is not None} == {JobStatus.KILLED}
    assert all("request" in last.reason for last in found if last is not None)
    for file in (tmp_path / "s").glob("plans/*/*/1/child"):
        assert _gone(int(file.read_text()))


def _gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "Z"
    except FileNotFoundError:
        return True


def test_a_runner_that_cannot_start_is_that_jobs_error(tmp_path: Path) -> None:
    item = PlannedJob("quick", "small", 1, "rtl")
    job = JobSpec("p", item, 1, spec_of(item, tmp_path / "job"), "i", ("/no/such/runner",))
    attempt = run_job(job)
    assert attempt.status is JobStatus.ERROR
    assert "does not start" in attempt.reason
