# SPDX-License-Identifier: Apache-2.0
"""The search: many smaller ops in one capsule, one run, the smallest that still fails, again.

Ops of a capsule are judged one by one, so that a run answers for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from driver.capture import Capsule, load_capsule, save_capsule
from driver.errors import InfrastructureError, InputError
from driver.evidence import CAPSULE
from driver.failures import kind_of
from driver.results import OpRow, RunResult, RunSpec
from regress.failures.replay import failed_op, spec_of
from regress.failures.shrink.candidates import OpCandidate, plainer, shorter
from regress.failures.shrink.standalone import write_test
from regress.paths import OUT
from regress.progress import ProgressBar
from regress.results.night import StoredJob
from regress.run import RUNNER, run

FOLDER = OUT / "shrink"
_MOST = 96
"""Candidates of one run."""


@dataclass(frozen=True)
class ShrinkResult:
    """The smallest that still fails."""

    before: str
    after: str
    trials: int
    rounds: int
    test: Path
    capsule: Path


@dataclass
class _CandidateRunner:
    """Runs candidates under the conditions of the stored failure."""

    spec: RunSpec
    recorded: Capsule
    runner: tuple[str, ...]
    trials: int = 0
    rounds: int = 0

    def fails(
        self, candidates: Sequence[OpCandidate], like: OpRow, *, strict: bool = False
    ) -> list[tuple[OpCandidate, OpRow]]:
        """Those that fail as `like` does. Calls that torch refuses are left out; `strict`: one that
        ends its run with an error is InfrastructureError."""
        from driver.capture.single import recall, single_call  # noqa: PLC0415 (torch takes seconds)

        legal, calls = [], []
        for candidate in candidates:
            call = recall(self.recorded, 0, candidate.arrays)
            try:
                single_call("probe", [call])
            except InputError:
                continue
            legal.append(candidate)
            calls.append(call)
        if not calls:
            return []
        rows = self._rows(calls) if strict else rows_of(calls, self._rows)
        pairs = zip(legal, rows, strict=True)
        return [(c, row) for c, row in pairs if row is not None and _fails_like(row, like)]

    def _rows(self, calls: Sequence[Any]) -> Sequence[OpRow]:
        from driver.capture.single import single_call  # noqa: PLC0415 (torch takes seconds)

        def run(calls: Sequence[Any]) -> Sequence[OpRow]:
            return self._run(single_call("candidates", calls, self.recorded.seed)).ops

        return all_rows(calls, run)

    def _run(self, capsule: Capsule) -> RunResult:
        self.rounds += 1
        self.trials += len(capsule.ops)
        folder = self.spec.out / f"run{self.rounds}"
        save_capsule(capsule, folder / CAPSULE)
        spec = self.spec.model_copy(
            update={"out": folder, "capsules": {"capsule": folder / CAPSULE}}
        )
        silent = ProgressBar(Console(file=StringIO()), "shrink")
        result = run(spec, silent, self.runner).result
        if result.status == "error":
            raise InfrastructureError(f"run {self.rounds} of the search: {result.message}")
        return result


def all_rows(
    calls: Sequence[Any], run: Callable[[Sequence[Any]], Sequence[OpRow]]
) -> Sequence[OpRow]:
    """The row of each call: those behind one that stops the device are run anew."""
    rows = list(run(calls))
    while len(rows) < len(calls):
        more = run(calls[len(rows) :])
        if not more:
            raise InfrastructureError("the device stops before its first op")
        rows += more
    return rows


def rows_of(
    calls: Sequence[Any], run: Callable[[Sequence[Any]], Sequence[OpRow]]
) -> list[OpRow | None]:
    """The row of each call; None for a call that ends its run with an error, as one that torch
    refuses only when it sees the numbers: the others are run without it."""
    try:
        return list(run(calls))
    except InfrastructureError:
        if len(calls) == 1:
            return [None]
    half = len(calls) // 2
    return [*rows_of(calls[:half], run), *rows_of(calls[half:], run)]


def shrink_job(
    job: StoredJob,
    op: int | None = None,
    most_rounds: int = 40,
    *,
    note: Callable[[str], None] = lambda _: None,
    out: Path = FOLDER,
    runner: tuple[str, ...] = RUNNER,
) -> ShrinkResult:
    """Shrink a failing op of a stored job, and write the test.

    InputError when it left no operands, or does not fail alone.
    """
    row = failed_op(job, op)
    kept = job.capsule(row)
    if kept is None:
        raise InputError(job.folder, f"operands of op {row.index}", "none", "those that it left")
    folder = out / f"{job.attempt.id}-op{row.index}"
    # Alone, and with the CPU for candidates that the NPU has no lowering for: they do not fail.
    alone: dict[str, object] = {"test": "replay", "op_filter": None, "shard": None}
    alone |= {"modes": ("isolated",), "checkpoint": None, "allow_cpu": True}
    spec = spec_of(job, folder).model_copy(update=alone)
    bench = _CandidateRunner(spec, load_capsule(kept), runner)
    start = _operands(bench.recorded)
    found = bench.fails([start], row, strict=True)
    if not found:
        expected = (
            "an op that fails alone and in these sources: this one needs stalls or the ops before "
            f"it, or the failure is gone (make replay ID={job.attempt.id})"
        )
        raise InputError(job.item.label, f"op {row.index}", "passes alone", expected)
    steps = _search(bench, found[0], most_rounds, note)
    smallest, failing = _last_alone(bench, steps, folder / CAPSULE, note)
    capsule = folder / CAPSULE
    test = write_test(folder, load_capsule(capsule), spec, failing, job.attempt.id)
    return ShrinkResult(str(start), str(smallest), bench.trials, bench.rounds, test, capsule)


def _fails_like(row: OpRow, like: OpRow) -> bool:
    return row.status == "fail" and _kind(row) == _kind(like)


def _kind(row: OpRow) -> tuple[str, str]:
    """What stays the same while everything else shrinks: whose fault, and what is said where it is
    no element's."""
    return row.blame, kind_of(row.failure)


def _operands(capsule: Capsule) -> OpCandidate:
    (op,) = capsule.ops
    inputs = [(name, ref) for name, ref in op.refs() if not name.startswith("outputs")]
    return OpCandidate(
        op=op.op,
        arrays={name: capsule.array(ref) for name, ref in inputs},
        types={name: ref.dtype for name, ref in inputs},
    )


_Found = tuple[OpCandidate, OpRow]
_Proposals = Callable[[OpCandidate, tuple[int, ...]], Iterator[OpCandidate]]


def _search(
    bench: _CandidateRunner, start: _Found, most: int, note: Callable[[str], None]
) -> list[_Found]:
    """Each smaller one that failed, from the start on: shapes until nothing shorter fails, then
    numbers; again when those became plainer."""
    note(str(start[0]))
    steps, before = [start], 0
    while len(steps) != before:
        steps += _exhausted(bench, steps[-1], shorter, most, note)
        before = len(steps)
        steps += _exhausted(bench, steps[-1], lambda operands, _: plainer(operands), most, note)
    return steps


def _exhausted(
    bench: _CandidateRunner,
    best: _Found,
    propose: _Proposals,
    most: int,
    note: Callable[[str], None],
) -> Iterator[_Found]:
    """The smallest failing proposal, and of that one, until there is none."""
    while bench.rounds < most:
        element = () if best[1].failure is None else best[1].failure.element
        found = _smallest(bench, best, propose(best[0], element))
        if found is None:
            return
        best = found
        note(str(best[0]))
        yield best


def _smallest(
    bench: _CandidateRunner, best: _Found, candidates: Iterable[OpCandidate]
) -> _Found | None:
    """The smallest failing one of those smaller than the best so far; None when there is none."""
    smaller = sorted(
        (one for one in candidates if one.size < best[0].size), key=lambda one: one.size
    )
    for first in range(0, len(smaller), _MOST):
        found = bench.fails(smaller[first : first + _MOST], best[1])
        if found:
            return found[0]
    return None


def _last_alone(
    bench: _CandidateRunner, steps: Sequence[_Found], target: Path, note: Callable[[str], None]
) -> _Found:
    """The smallest that fails once more by itself, in the same way, as a capsule at `target`. What
    failed only behind other candidates is passed over; InfrastructureError when all do."""
    from driver.capture.single import recall, single_call  # noqa: PLC0415 (torch takes seconds)

    for operands, best in reversed(steps):
        capsule = single_call("shrunk", [recall(bench.recorded, 0, operands.arrays)])
        if any(_fails_like(row, best) for row in bench._run(capsule).ops):
            save_capsule(capsule, target)
            return operands, best
        note(f"{operands}: failed among others, and passes alone")
    raise InfrastructureError(f"{steps[0][0]} failed once, and passes now")
