# SPDX-License-Identifier: Apache-2.0
"""The shortest run of ops that repeats a failure: does the op alone show the same bits?

An op may fail only because of what ran before it (state that the hardware should not have kept).
Then its line runs the shortest prefix, found by trying, that shows the same bits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from driver.errors import NpuError
from driver.failures import kind_of
from driver.results import OpRow, RunSpec
from tb.ops.stopped import OpStopped, stopped_row

_TRIED = 3
"""Failing ops of a run whose lines are tried: as many as the report shows in full."""
_LONGEST = 64
"""Ops of the longest prefix that is tried; beyond, the whole run is the prefix."""

Rerun = Callable[[RunSpec, set[int]], Iterator[OpRow]]
"""Runs the ops of these numbers on fresh devices."""


def with_prefixes(
    spec: RunSpec, rows: Sequence[OpRow], candidates: Sequence[int], rerun: Rerun
) -> list[OpRow]:
    """The rows; a failing one with the prefix that its line needs.

    `candidates`: numbers of all ops of the test, in order.
    """
    failing = [row for row in rows if row.status == "fail" and row.replay_from is None]
    found = {
        row.index: _prefix(spec, row, [n for n in candidates if n <= row.index], rerun)
        for row in failing[:_TRIED]
    }
    if any(first is not None for first in found.values()):  # state matters: the rest is not tried
        found |= {row.index: candidates[0] for row in failing[_TRIED:]}
    return [
        row.model_copy(update={"replay_from": found[row.index]}) if row.index in found else row
        for row in rows
    ]


def _prefix(spec: RunSpec, row: OpRow, before: Sequence[int], rerun: Rerun) -> int | None:
    """The first op of the prefix; None when the op alone shows the same."""
    length = 1
    while length < len(before) and length <= _LONGEST:
        numbers = before[-length:]
        if _shows(spec, row, set(numbers), rerun):
            return None if length == 1 else numbers[0]
        length *= 2
    return before[0] if len(before) > 1 else None


def _shows(spec: RunSpec, row: OpRow, numbers: set[int], rerun: Rerun) -> bool:
    """Whether a run of these ops ends with the same failure."""
    with tempfile.TemporaryDirectory(prefix="npu-replay-") as folder:
        quiet = spec.model_copy(update={"out": Path(folder), "waves": "none", "shard": None})
        quiet = quiet.model_copy(update={"op_filter": row.index, "op_from": min(numbers)})
        try:
            found = [new for new in rerun(quiet, numbers) if new.index == row.index]
        except OpStopped as stop:
            found = [stopped_row(stop, spec)] if stop.case.index == row.index else []
        except NpuError:
            return False
    return bool(found) and signature(found[0]) == signature(row)


def signature(row: OpRow) -> tuple[object, ...]:
    """What two rows of the same failure have in common; the cycle differs with what ran before, as
    do the numbers and paths in what is said where no element is wrong."""
    failure = row.failure
    where = () if failure is None else (failure.output, failure.element)
    bits = () if failure is None else (failure.expected_bits, failure.actual_bits)
    return row.status, row.blame, row.rtl_vs_cmodel_mismatches, *where, *bits, kind_of(failure)
