# SPDX-License-Identifier: Apache-2.0
"""A result whose rows are checks of a bench instead of ops: which are picked, what a row says.

Knows no bench and no simulator.
"""

from __future__ import annotations

from collections.abc import Sequence

from driver.errors import InputError
from driver.reproduce import reproduce_line
from driver.results import Blame, Failure, OpRow, RunResult, RunSpec, RunStatus, Where


def picked(spec: RunSpec, count: int) -> list[int]:
    """The numbers of the checks to run, of `count`. InputError: there is no such check."""
    if spec.op_filter is not None:
        if spec.op_filter >= count:
            raise InputError("command line", "op", spec.op_filter, f"0 to {count - 1}")
        first = spec.op_filter if spec.op_from is None else spec.op_from
        return list(range(first, spec.op_filter + 1))
    return in_shard(spec, range(count))


def in_shard(spec: RunSpec, indices: Sequence[int]) -> list[int]:
    """Those of a test's ops or checks that are in the spec's shard. InputError, the same in each:
    there are more shards than `indices`."""
    if spec.shard is None:
        return list(indices)
    if spec.shard.count > len(indices):
        raise InputError("command line", "shards", spec.shard.count, f"{len(indices)} at most")
    return [at for at in indices if spec.shard.holds(at)]


def check_row(
    index: int,
    name: str,
    module: str,
    compared: int,
    failure: str | None,
    *,
    where: Where = "rtl",
    blame: Blame = "rtl",
) -> OpRow:
    """One check. `compared` counts what the bench compares: without a comparison a check fails;
    `failure` is None when it passed; `blame` is whose fault a failure is."""
    if failure is None and not compared:
        failure, blame = "nothing was compared", "unknown"
    return OpRow(
        index=index,
        op=name,
        module=module,
        source="",
        where=where,
        dtype="",
        shapes=(),
        elements_compared=compared,
        rtl_vs_cmodel_mismatches=0 if failure is None else None,
        torch_max_error=None,
        torch_bound=None,
        cycles=None,
        macs=None,
        utilisation=None,
        status="pass" if failure is None else "fail",
        blame="none" if failure is None else blame,
        failure=None if failure is None else no_element(failure),
    )


def no_element(detail: str, cycle: int | None = None) -> Failure:
    """A failure that no element of a result shows."""
    return Failure(
        element=(),
        tile=None,
        expected_bits="0x0",
        actual_bits="0x0",
        expected=0.0,
        actual=0.0,
        cycle=cycle,
        detail=detail,
    )


def checks_result(
    spec: RunSpec, rows: Sequence[OpRow], broken: tuple[int, str] | None = None
) -> RunResult:
    """The result of the checks that ran; the reproduce line names the first that failed.

    `broken`: the number of the check in which the bench broke, and how; no check after it ran.
    """
    failed = [row.index for row in rows if row.status == "fail"]
    again, message = broken or (failed[0] if failed else None, None)
    status: RunStatus = "error" if broken else "fail" if failed else "pass"
    return RunResult(
        test=spec.test,
        status=status,
        config=spec.config,
        seed=spec.seed,
        backend=spec.backend,
        mutant=spec.mutant,
        cycles=None,
        wall_seconds=0.0,
        reproduce=reproduce_line(spec, again),
        message=message,
        ops=tuple(rows),
        ledger=(),
    )
