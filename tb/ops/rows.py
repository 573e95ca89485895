# SPDX-License-Identifier: Apache-2.0
"""An op's row in the result, from what devices and judge say of it. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driver.config import HwConfig
from driver.errors import UnsupportedOp
from driver.isa import DTYPE_BYTES
from driver.results import BackendName, Blame, Failure, OpRow, Where
from driver.runtime import TensorView
from driver.runtime.torch_types import NPU_TYPES
from golden.verdict import Verdict
from tb.ops.case import Case
from tb.ops.cost import cost_of
from tb.ops.pair import PairResult

_LONG = 200
"""Characters of an error's text that are too many for a message."""
_NOT_MEASURED: dict[str, Any] = {
    "elements_compared": 0,
    **dict.fromkeys(("rtl_vs_cmodel_mismatches", "torch_max_error", "torch_bound")),
    **dict.fromkeys(("cycles", "macs", "utilisation")),
}


@dataclass(frozen=True)
class CpuOp:
    """An op that ran on CPU torch because the user allowed it."""

    row: OpRow
    """Nothing was compared."""
    reason: str
    """Why it could not run on the NPU."""


def refused(case: Case, error: UnsupportedOp, *, allow_cpu: bool) -> CpuOp:
    """A case that the NPU cannot run: accounted for where that is allowed, else the error that
    names op, type and module."""
    if not allow_cpu:
        where = f"{case.op} ({case.dtype() or 'no tensors'}) in {case.module}"
        known = error.expected if len(error.expected) < _LONG else "an op of driver/lower's table"
        expected = f"{known}, or --allow-cpu"
        raise UnsupportedOp(where, error.field, error.value, expected) from error
    row = row_about(case, "cpu", dtype=case.dtype())
    return CpuOp(row, f"NOT ON THE NPU, {error.field}: {error.value}")


def row_about(case: Case, where: Where, **found: Any) -> OpRow:
    """The row of a case, a pass of which nothing was measured but what `found` says."""
    shapes = case.shapes()
    said = {"shapes": shapes, "status": "pass", "blame": "none", "failure": None, **_NOT_MEASURED}
    about = {"index": case.index, "op": case.op, "module": case.module, "source": case.source}
    return OpRow.model_validate({**about, "where": where, **said, **found})


def judged_row(
    case: Case,
    result: PairResult,
    verdict: Verdict,
    found: tuple[Blame, Failure] | None,
    *,
    where: BackendName,
    config: HwConfig,
) -> OpRow:
    """The row of an op that ran. `found`: what is wrong with it.

    A device that stopped early has fewer records: its cycles are those it took.
    """
    rtl, comparison = result.rtl, verdict.comparison
    cost = cost_of(result.packets, None if rtl is None else rtl.records, config)
    blame, failure = found or ("none", None)
    return row_about(
        case,
        where,
        dtype=_types(case),
        shapes=tuple(tuple(operand.shape) for operand in case.operands()),
        elements_compared=verdict.elements_compared,
        rtl_vs_cmodel_mismatches=None if rtl is None else verdict.rtl_mismatches,
        torch_max_error=comparison.max_error,
        torch_bound=comparison.bound,
        cycles=cost.cycles,
        macs=cost.macs,
        utilisation=cost.utilisation,
        status="pass" if failure is None else "fail",
        blame=blame,
        failure=failure,
        packets=cost.packets,
        dram_bytes=cost.dram_bytes,
        compulsory_bytes=result.compulsory_bytes,
        bound_by=cost.bound_by,
        unbounded=comparison.unbounded,
        zeros=comparison.zeros,
    )


def _types(case: Case) -> str:
    """The type of the first operand and of the first result, once when they are the same."""
    given = next((NPU_TYPES.get(operand.dtype) for operand in case.operands()), None)
    made = next((output.dtype for output in case.outputs if output is not None), None)
    names = [dtype.name.lower() for dtype in (given, made) if dtype is not None]
    return "→".join(dict.fromkeys(names))


def address_of(view: TensorView, element: tuple[int, ...]) -> int:
    """The first byte of an element."""
    steps = sum(at * step for at, step in zip(element, view.strides, strict=True))
    return view.address + steps * DTYPE_BYTES[view.dtype]


def failed(row: OpRow, blame: Blame, failure: Failure) -> OpRow:
    """The row as one of an op that failed."""
    update = {"status": "fail", "blame": blame, "failure": failure}
    return OpRow.model_validate({**dict(row), **update})


def also(failure: Failure, text: str) -> Failure:
    """The failure with another fact in its detail."""
    return failure.model_copy(update={"detail": f"{failure.detail}; {text}"})
