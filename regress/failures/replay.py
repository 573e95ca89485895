# SPDX-License-Identifier: Apache-2.0
"""Runs a stored failure again, and says whether the first mismatch is the one that was stored.

Owns making the spec of a stored attempt runnable here and now. The run itself is regress.run's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from driver.errors import InputError
from driver.failures import kind_of, normalised
from driver.results import RESULT_FILE, OpRow, RunResult, RunSpec, Waves
from regress.paths import CONFIG_FILE, OUT
from regress.progress import ProgressBar
from regress.results.night import StoredJob, sizes_of
from regress.run import RUNNER, RunOutcome, run

FOLDER = OUT / "replay"


class ReplayVerdict(StrEnum):
    """A failure against the stored one."""

    SAME = "the same first mismatch as stored"
    DIFFERENT = "another failure than the stored one"
    GONE = "passes now"
    OTHER_OP = "another op has that number now: this says nothing of the stored failure"


@dataclass(frozen=True)
class ReplayResult:
    """What came of running a stored attempt, or one of its ops, again."""

    outcome: RunOutcome
    verdict: ReplayVerdict
    stored: str
    """The first mismatch as stored, in words."""
    now: str


def mismatch(row: OpRow) -> tuple[object, ...]:
    """What has to be equal for a failure to be the same. The cycle is not: ops before it count."""
    found = row.failure
    where = None if found is None else (found.element, found.expected_bits, found.actual_bits)
    return row.index, row.op, row.blame, where, kind_of(found)


def _identity(row: OpRow) -> tuple[object, ...]:
    return row.op, row.module, row.dtype, row.shapes


def _called(row: OpRow) -> str:
    return f"op {row.index} is {row.op} {row.dtype} {sizes_of(row)} in {row.module}"


def describe(row: OpRow | None, otherwise: str) -> str:
    """A first mismatch in a line."""
    if row is None:
        return otherwise
    found = row.failure
    if found is None or found.tile is None:
        return f"op {row.index}, blame {row.blame}" + (f", {found.detail}" if found else "")
    bits = f"expected {found.expected_bits}, actual {found.actual_bits}"
    return f"op {row.index}, blame {row.blame}, element {list(found.element)}, {bits}"


def failing_row(job: StoredJob, op: int | None) -> OpRow | None:
    """The failing op of that index, or the first; None when the job failed without one.

    InputError when nothing failed, or the op of that index did not.
    """
    rows = job.failing
    if op is not None and job.result is None:
        expected = "what the job found; without OP all of it is run again"
        raise InputError(job.folder / RESULT_FILE, "file", "missing or unreadable", expected)
    if op is None:
        if not rows and not job.attempt.red:
            raise InputError(job.item.label, "status", job.attempt.status.value, "a failed job")
        return rows[0] if rows else None
    for row in rows:
        if row.index == op:
            return row
    known = ", ".join(str(row.index) for row in rows) or "no op at all"
    raise InputError(job.item.label, "OP", op, f"one that failed: {known}")


def failed_op(job: StoredJob, op: int | None) -> OpRow:
    """The failing op of that index, or the first. InputError also where the job ended without one:
    stopped, out of time, or broken before."""
    row = failing_row(job, op)
    if row is None:
        status = job.attempt.status.value
        expected = f"a job with an op that failed; {job.replay_line()} runs all of it again"
        raise InputError(f"{job.item.label}, attempt {job.attempt.id}", "status", status, expected)
    return row


def spec_of(job: StoredJob, out: Path, op: int | None = None, waves: Waves = "none") -> RunSpec:
    """The job's own spec with another folder, and only one op where `op` is given.

    InputError when the job never started. Capsules and sim_config.yaml that are no longer where
    they were (another machine's) are replaced by this checkout's own; for a configuration of
    another name that is gone nothing can stand: InputError.
    """
    stored = job.spec
    if stored is None:
        raise InputError(job.folder, "run.json", "missing or unreadable", "a job that was started")
    config_file = stored.config_file if stored.config_file.exists() else CONFIG_FILE
    if config_file.name != stored.config_file.name:
        expected = "the configurations that the job ran with"
        raise InputError(stored.config_file, "config_file", "missing", expected)
    changes = {
        "out": out.absolute(),
        "waves": waves,
        "config_file": config_file,
        "capsules": _capsules(job, stored),
        "op_filter": stored.op_filter if op is None else op,
        "op_from": stored.op_from if op is None else _prefix(job, op),
        "shard": stored.shard if op is None else None,
    }
    return stored.model_copy(update=changes)


def _prefix(job: StoredJob, op: int) -> int | None:
    """Where the ops begin that the failure of `op` needs before it."""
    return next((row.replay_from for row in job.failing if row.index == op), None)


def _capsules(job: StoredJob, spec: RunSpec) -> dict[str, Path]:
    if all(path.exists() for path in spec.capsules.values()):
        return spec.capsules
    from regress.capsules import kept_capsules  # noqa: PLC0415 (numpy, safetensors)

    found = {}
    for name in spec.capsules:
        workload = job.item.workload if name == "capsule" else name
        if workload is None:
            raise InputError(job.folder, f"capsule {name}", spec.capsules[name], "a capsule")
        kept = kept_capsules((workload,), spec.seed, lambda _: None, spec.checkpoint)
        found[name] = kept[workload]
    return found


def replay_job(
    job: StoredJob,
    progress: Callable[[str], ProgressBar],
    op: int | None = None,
    out: Path | None = None,
    runner: tuple[str, ...] = RUNNER,
) -> ReplayResult:
    """Run a stored failure again, alone."""
    row = failing_row(job, op)
    name = job.attempt.id if row is None else f"{job.attempt.id}-op{row.index}"
    spec = spec_of(job, out or FOLDER / name, None if row is None else row.index)
    outcome = run(spec, progress(job.item.label), runner)
    return _compared(job, row, outcome)


def _compared(job: StoredJob, row: OpRow | None, outcome: RunOutcome) -> ReplayResult:
    result = outcome.result
    there = next((op for op in result.ops if row is not None and op.index == row.index), None)
    if row is not None and there is not None and _identity(there) != _identity(row):
        verdict = ReplayVerdict.OTHER_OP
        return ReplayResult(outcome, verdict, _called(row), _called(there))
    failed = [op for op in result.ops if op.status == "fail"]
    now = there if there in failed else next(iter(failed), None)
    return ReplayResult(
        outcome,
        _verdict(job, row, now, result),
        describe(row, f"{job.attempt.status.value}: {job.attempt.reason}"),
        describe(now, _failure_text(result)),
    )


def _verdict(
    job: StoredJob, row: OpRow | None, now: OpRow | None, result: RunResult
) -> ReplayVerdict:
    attempt, stored = job.attempt, job.result
    if result.status == "pass":
        return ReplayVerdict.GONE
    if row is not None:
        same = now is not None and mismatch(now) == mismatch(row)
    else:
        said = attempt.reason if stored is None else _first_line(stored)
        same = now is None and normalised(_first_line(result)) == normalised(said)
    return ReplayVerdict.SAME if same else ReplayVerdict.DIFFERENT


def _first_line(result: RunResult) -> str:
    return (result.message or "").split("\n", maxsplit=1)[0]


def _failure_text(result: RunResult) -> str:
    return result.status if result.message is None else f"{result.status}: {_first_line(result)}"
