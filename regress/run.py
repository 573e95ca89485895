# SPDX-License-Identifier: Apache-2.0
"""One run of one test: starts tb.run, follows it, and answers with a result that can be trusted.

A result is trusted only when it is of this run, agrees with the exit status, and every planned op
is in it. Everything else is an error, never a pass.
"""

from __future__ import annotations

import hashlib
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, get_args

from pydantic import TypeAdapter, ValidationError

from driver import evidence
from driver.errors import ERROR_PREFIX, InfrastructureError, InputError, ProcessRefused
from driver.reproduce import reproduce_line
from driver.results import (
    COCOTB_FOLDER,
    RESULT_FILE,
    SPEC_FILE,
    EndEvent,
    Mode,
    NoteEvent,
    OpEvent,
    OpRow,
    PlanEvent,
    RunResult,
    RunSpec,
    RunStatus,
    Waves,
    parse_event,
    read_json,
    write_json,
    write_text,
)
from driver.test_info import TestInfo
from regress.bootstrap import Environment
from regress.folder import fresh, locked
from regress.paths import BUILD, ROOT
from regress.process import Ended, execute, last_lines, terminable
from regress.run_report import curves, roofline
from regress.run_report.junit import JUNIT_FILE, write_junit
from regress.run_report.text import OPS_FILE

LOG_FILE = "sim.log"
RUNNER: tuple[str, ...] = (sys.executable, "-m", "tb.run")
LISTS = BUILD / "tests"
SHOWN_NAMES = (RESULT_FILE, OPS_FILE, roofline.FILE, curves.FILE)
"""What the command line leaves for a reader, also of a test that ran in shards."""
OWN_NAMES = (
    *(*SHOWN_NAMES, SPEC_FILE, JUNIT_FILE, LOG_FILE, evidence.FOLDER, COCOTB_FOLDER),
    *(f"waves.{kind}" for kind in get_args(Waves)),
)
"""Everything that a run may leave in its folder, directly."""
EXIT_CODES = {"pass": 0, "fail": 1, "error": 3}

_TESTS = TypeAdapter(tuple[TestInfo, ...])
_LIST_LIMIT_S = 60.0
_GRACE = 0.1
"""tb.run keeps the time limit itself and can say more; this part of it later it is stopped here."""
_LONGEST_GRACE_S = 10.0
_LOG_LINES = 8
_Judged = tuple[RunResult, int]


@dataclass(frozen=True)
class RunOutcome:
    """What a run leaves: its result, and the exit status of the command line."""

    result: RunResult
    exit_code: int
    artefacts: tuple[Path, ...]
    ended: Ended
    end: EndEvent | None = None
    """What the run said last; None when it could not."""


class RunListener(Protocol):
    """What follows a run; an exception of a method ends the run."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: Any) -> None: ...

    def plan(self, ops: int) -> None:
        """So many ops will run."""

    def op(self, row: OpRow) -> None:
        """An op is done."""

    def note(self, text: str) -> None:
        """A line for the reader."""

    def tick(self) -> None:
        """Nothing has happened for a moment."""


def runs_in(test: TestInfo, mode: Mode) -> bool:
    """Whether a test runs its ops in this mode when that is asked for."""
    return mode in test.modes or test.takes_modes


def list_tests(runner: tuple[str, ...] = RUNNER, kept: Path = LISTS) -> tuple[TestInfo, ...]:
    """The tests there are, asked of the bench once for each state of its sources (it takes
    seconds). InfrastructureError when the bench cannot say."""
    file = kept / f"{_bench_digest(runner)}.json"
    try:
        return _TESTS.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        text = _ask_for_tests(runner)
    try:
        tests = _TESTS.validate_json(text)
    except ValidationError as error:
        raise InfrastructureError("the list of tests is not what it should be") from error
    write_text(file, text)
    return tests


def _bench_digest(runner: tuple[str, ...]) -> str:
    state = hashlib.sha256(repr(runner).encode())
    for path in sorted((ROOT / "tb").rglob("[!.]*.py")):
        data = path.read_bytes()
        state.update(f"{path.relative_to(ROOT)}:{len(data)}:".encode() + data)
    return state.hexdigest()[:16]


def _ask_for_tests(runner: tuple[str, ...]) -> str:
    lines: list[str] = []
    with TemporaryDirectory(prefix="npu-") as folder:
        log = Path(folder) / "log"
        ended = execute([*runner, "--list"], log, _LIST_LIMIT_S, lines.append)
        if ended.status != 0 or ended.timed_out:
            why = " | ".join(last_lines(log, 1)) or "no message"
            raise InfrastructureError(f"listing the tests {ended.describe(_LIST_LIMIT_S)}: {why}")
    return "\n".join(lines)


def test_named(name: str, tests: tuple[TestInfo, ...]) -> TestInfo:
    """The test of that name, or InputError with the names there are."""
    for test in tests:
        if test.name == name:
            return test
    from regress.capsules import known_workloads  # noqa: PLC0415 (numpy, safetensors)

    expected = "one of " + ", ".join(test.name for test in tests)
    if name in known_workloads():
        expected += f"; it is a workload: npu-cosim capture {name}"
    raise InputError("command line", "TEST", name or "nothing", expected)


def run(spec: RunSpec, progress: RunListener, runner: tuple[str, ...] = RUNNER) -> RunOutcome:
    """Run `spec` in its folder and leave result.json, junit.xml and the log there. SIGTERM and
    SIGHUP end it as Ctrl-C does.

    InputError, and nothing run, when the folder cannot be used.
    """
    with terminable():
        return run_in_thread(spec, progress, runner)


def run_in_thread(
    spec: RunSpec, progress: RunListener, runner: tuple[str, ...] = RUNNER
) -> RunOutcome:
    """`run` for any thread: signals are the caller's."""
    _check_extensions()
    with locked(spec.out, "OUT"), fresh(spec.out, OWN_NAMES):
        write_json(spec.out / SPEC_FILE, spec)
        start = time.monotonic()
        follower = _Follower(progress)
        command = [*runner, str(spec.out / SPEC_FILE)]
        limit = spec.timeout_s + min(_GRACE * spec.timeout_s, _LONGEST_GRACE_S)
        with progress:
            ended = execute(
                command, spec.out / LOG_FILE, limit, follower.take, on_idle=progress.tick
            )
        result, code = _judge(spec, ended, follower, time.monotonic() - start)
        outcome = RunOutcome(result, code, _artefacts(spec), ended, follower.end)
        write_junit(outcome.result, spec.out / JUNIT_FILE)
        return outcome


@cache
def _check_extensions() -> None:
    """InputError when the C++ cmodel that is installed is of other sources than those here: its
    results would be said to be theirs."""
    environment = Environment(ROOT)
    built = environment.finished().get("extensions")
    if built is not None and built != environment.wanted()["extensions"]:
        expected = "the C++ extensions of these sources: make setup"
        raise InputError(environment.stamp, "extensions", "built from other sources", expected)


class _Follower:
    """Takes the lines of a run's stdout."""

    def __init__(self, progress: RunListener) -> None:
        self._progress = progress
        self.planned: int | None = None
        self.end: EndEvent | None = None

    def take(self, line: str) -> None:
        """One line; what is no event is some library's chatter and of no interest."""
        match parse_event(line):
            case PlanEvent(ops=ops):
                self.planned = ops
                self._progress.plan(ops)
            case OpEvent() as row:
                self._progress.op(row)
            case NoteEvent(text=text):
                self._progress.note(text)
            case EndEvent() as event:
                self.end = event


def _judge(spec: RunSpec, ended: Ended, follower: _Follower, seconds: float) -> _Judged:
    """Result and exit status: the run's own result where it can be trusted, an error where not."""
    if ended.timed_out:
        return _stopped(spec, f"the run {ended.describe(spec.timeout_s)}", seconds)
    try:
        result = read_json(spec.out / RESULT_FILE, RunResult)
    except InputError:
        return _no_result(spec, ended, seconds)
    why = _distrust(spec, result, ended.status, follower.planned)
    if why is not None:
        return _broken(spec, f"the run {why}", seconds)
    code = ended.status if result.status == "error" else EXIT_CODES[result.status]
    return result, code


def _stopped(spec: RunSpec, what: str, seconds: float) -> _Judged:
    """The error for a run at its time limit: with the ops that it had finished, where it could
    still write them. A failure among them is a verdict."""
    try:
        result = read_json(spec.out / RESULT_FILE, RunResult)
    except InputError:
        return _broken(spec, what, seconds)
    if result.status != "error" or not _is_of(spec, result):
        return _broken(spec, what, seconds)
    status: RunStatus = "fail" if any(row.status == "fail" for row in result.ops) else "error"
    said = {"status": status, "message": f"{what}: {result.message}"}
    result = result.model_copy(update=said)
    write_json(spec.out / RESULT_FILE, result)
    return result, EXIT_CODES[status]


_IDENTITY = ("test", "config", "seed", "backend", "array", "simulator", "mutant")
"""What a spec and the result of its run have in common."""


def _is_of(spec: RunSpec, result: RunResult) -> bool:
    """Whether a result is that of the run, as far as it says."""
    return all(getattr(result, name) == getattr(spec, name) for name in _IDENTITY)


def _no_result(spec: RunSpec, ended: Ended, seconds: float) -> _Judged:
    """The bench says why it stopped in the last line of its log; where not, it died."""
    said = "".join(last_lines(spec.out / LOG_FILE, 1))
    text = said.removeprefix(ERROR_PREFIX)
    if ended.status == ProcessRefused.exit_code and text:
        raise ProcessRefused(text)
    if ended.status == InfrastructureError.exit_code and text != said:
        return _broken(spec, text, seconds)
    return _broken(spec, f"the run {ended.describe(spec.timeout_s)} and left no result", seconds)


def _distrust(spec: RunSpec, result: RunResult, status: int, planned: int | None) -> str | None:
    """Why a result cannot be believed, or None."""
    if not _is_of(spec, result):
        return "left the result of another run"
    expected = {"pass": (0,), "fail": (1,), "error": (2, 3)}[result.status]
    if status not in expected:
        return f"ended with status {status}, but its result says {result.status}"
    if result.status == "pass" and planned is not None and planned != len(result.ops):
        return f"planned {planned} ops, but its result has {len(result.ops)}"
    return None


def _broken(spec: RunSpec, what: str, seconds: float) -> _Judged:
    """The error that stands in for a result, written over whatever the run left."""
    lines = [f"    {line}" for line in last_lines(spec.out / LOG_FILE, _LOG_LINES)]
    if lines and "KeyboardInterrupt" in lines[-1]:
        lines = []  # where in its start the run was when it was stopped, which helps nobody
    result = RunResult(
        test=spec.test,
        status="error",
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        array=spec.array,
        simulator=spec.simulator,
        mutant=spec.mutant,
        cycles=None,
        wall_seconds=seconds,
        reproduce=reproduce_line(spec),
        message="\n".join([what, *lines]),
        ops=(),
        ledger=(),
    )
    write_json(spec.out / RESULT_FILE, result)
    return result, EXIT_CODES["error"]


def _artefacts(spec: RunSpec) -> tuple[Path, ...]:
    names = [RESULT_FILE, JUNIT_FILE, LOG_FILE]
    waves = sorted(
        path for at in (".", f"{COCOTB_FOLDER}/*") for path in spec.out.glob(f"{at}/waves.*")
    )
    return (*(spec.out / name for name in names), *waves)
