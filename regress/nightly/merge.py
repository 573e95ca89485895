# SPDX-License-Identifier: Apache-2.0
"""The results of a test's shards as the one result that the whole test would have left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from driver.errors import InfrastructureError
from driver.reproduce import reproduce_line
from driver.results import LedgerRow, OpRow, RunResult, RunSpec, RunStatus, Site


def merged(spec: RunSpec, results: Sequence[RunResult], wall_seconds: float) -> RunResult:
    """The result of `spec`, whose shards left `results`, in any order.

    Without `digest`, which is of all bits in the order of the ops: no shard sees them all.
    InfrastructureError when an op is in two of them.
    """
    rows = _rows(results)
    first_failed = next((row.index for row in rows if row.status == "fail"), None)
    cycles = [result.cycles for result in results if result.cycles is not None]
    messages = dict.fromkeys(result.message for result in results if result.message)
    return RunResult(
        test=spec.test,
        status=_status(results),
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        array=spec.array,
        simulator=spec.simulator,
        mutant=spec.mutant,
        cycles=sum(cycles) if cycles else None,
        wall_seconds=round(wall_seconds, 3),
        reproduce=reproduce_line(spec, first_failed),
        message="\n".join(messages) or None,
        ops=rows,
        ledger=_ledger(results),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
        curves=tuple(curve for result in results for curve in result.curves),
    )


def _rows(results: Sequence[RunResult]) -> tuple[OpRow, ...]:
    rows = sorted((row for result in results for row in result.ops), key=lambda row: row.index)
    for before, after in pairwise(rows):
        if before.index == after.index:
            raise InfrastructureError(f"op {after.index} is in the results of two shards")
    return tuple(rows)


def _status(results: Sequence[RunResult]) -> RunStatus:
    found = {result.status for result in results}
    for status in ("error", "fail"):
        if status in found:
            return status
    return "pass"


def _ledger(results: Sequence[RunResult]) -> tuple[LedgerRow, ...]:
    counts: Counter[tuple[str, Site, str]] = Counter()
    for result in results:
        for row in result.ledger:
            counts[row.op, row.where, row.reason] += row.count
    return tuple(
        LedgerRow(op=op, where=where, count=count, reason=reason)
        for (op, where, reason), count in sorted(counts.items())
    )
