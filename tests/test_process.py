# SPDX-License-Identifier: Apache-2.0
"""A child and all its processes end with whoever started them, in every moment and in every way."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driver.errors import InfrastructureError, InputError
from regress.paths import ROOT
from regress.process import execute

ROUNDS = int(os.environ.get("NPU_CRASH_ROUNDS", "12"))
JOB = (
    "import subprocess, sys;subprocess.run([sys.executable, '-I', '-S', '-c', {inner!r}, {mark!r}])"
)
INNER = "import time; time.sleep(600)"
RUNNER = """
import sys
from pathlib import Path
from regress.process import execute
sys.stdout.write("ready\\n"); sys.stdout.flush()
execute([sys.executable, "-I", "-S", "-c", sys.argv[1], sys.argv[2]], Path(sys.argv[3]), 600, print)
"""


def _alive(mark: str) -> list[int]:
    """Processes that carry a mark in their command line and have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                ended = (folder / "stat").read_text().rpartition(") ")[2][0] == "Z"
                if not ended and mark.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
    return found


def _left(mark: str, limit_s: float = 10) -> list[int]:
    """The processes with a mark that are still there after a while."""
    deadline = time.monotonic() + limit_s
    while (found := _alive(mark)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def test_no_process_outlives_a_runner_that_is_killed_in_its_first_second(tmp_path: Path) -> None:
    dice = random.Random(2)
    for number in range(ROUNDS):
        mark = f"npu-mark-{os.getpid()}-{number}"
        job = JOB.format(inner=INNER, mark=mark)
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, job, mark, str(tmp_path / "log")],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert runner.stdout is not None
        runner.stdout.readline()
        time.sleep(dice.choice((0.0, 0.002, 0.01, 0.03, 0.1)) * dice.random())
        runner.kill()
        runner.wait()
        runner.stdout.close()
        left = _left(mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"round {number}"


def test_nothing_starts_when_the_runner_has_ended_already(tmp_path: Path) -> None:
    """The launcher is given the id of a process that is not its parent."""
    made = tmp_path / "made"
    script = f"open({str(made)!r}, 'w')"
    launcher = ROOT / "regress" / "launch.py"
    command = [sys.executable, "-I", "-S", str(launcher), "1", sys.executable, "-c", script]
    done = subprocess.run(command, check=False, start_new_session=True)
    assert (done.returncode, made.exists()) == (3, False)


@pytest.mark.parametrize("victim", ["launcher", "job"])
def test_a_job_that_is_killed_takes_its_processes_along_and_says_so(
    tmp_path: Path, victim: str
) -> None:
    mark = f"npu-mark-{os.getpid()}-{victim}"
    job = f"import os, subprocess; print(os.getpid(), os.getppid(), flush=True); {JOB}"
    command = [sys.executable, "-I", "-S", "-c", job.format(inner=INNER, mark=mark), mark]

    def kill(line: str) -> None:
        own, parent = map(int, line.split())
        os.kill(own if victim == "job" else parent, signal.SIGKILL)

    ended = execute(command, tmp_path / "log", 60, kill)
    assert (ended.status, ended.timed_out) == (-signal.SIGKILL, False)
    assert not _left(mark)


@pytest.mark.parametrize("code", [0, 1, 3, 130])
def test_the_exit_status_and_the_output_are_the_commands(tmp_path: Path, code: int) -> None:
    lines: list[str] = []
    script = f"import sys; print('a'); sys.stderr.write('b'); sys.exit({code})"
    ended = execute([sys.executable, "-c", script], tmp_path / "log", 60, lines.append)
    assert (ended.status, lines, (tmp_path / "log").read_text()) == (code, ["a"], "b")


def test_a_signal_that_ends_the_command_is_its_status(tmp_path: Path) -> None:
    script = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    ended = execute([sys.executable, "-c", script], tmp_path / "log", 60, print)
    assert ended.status == -signal.SIGSEGV


def test_a_job_is_interrupted_even_where_the_runner_ignores_it(tmp_path: Path) -> None:
    """A script that runs in the background ignores SIGINT, and so would all its children."""
    said = tmp_path / "said"
    # A signal between Python's look for signals and the system call is noticed when that returns
    # only, so a long sleep would lose one in some ten thousand.
    script = (
        "import time\n"
        "try:\n"
        "  print(1, flush=True)\n"
        "  while True: time.sleep(0.01)\n"
        "except KeyboardInterrupt:\n"
        f"  open({str(said)!r}, 'w').write('told')"
    )

    def stop(_line: str) -> None:
        raise InfrastructureError("enough")

    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(InfrastructureError, match="enough"):
            execute([sys.executable, "-I", "-S", "-c", script], tmp_path / "log", 60, stop)
    finally:
        signal.signal(signal.SIGINT, former)
    assert said.read_text() == "told"


def test_a_log_that_is_a_link_is_refused_and_its_target_kept(tmp_path: Path) -> None:
    target, log = tmp_path / "target", tmp_path / "log"
    target.write_text("mine")
    log.symlink_to(target)
    with pytest.raises(InputError, match="a log that can be written"):
        execute([sys.executable, "-c", ""], log, 60, print)
    assert target.read_text() == "mine"


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="/none does not start"):
        execute(["/none"], tmp_path / "log", 60, print)
