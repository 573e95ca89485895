# SPDX-License-Identifier: Apache-2.0
"""From what devices and scoreboard say of an op to its row in the result. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from driver.config import HwConfig
from driver.isa import DTYPE_BYTES
from driver.lower import TensorView
from driver.results import BackendName, Drift, Failure, OpRow
from golden.reference import NPU_TYPES, MatmulCall
from golden.scoreboard import Blame, Finding
from tb.ops.case import Case
from tb.ops.cost import cost_of
from tb.ops.pair import Trial
from tb.ops.problem import Problem


@dataclass(frozen=True)
class Subject:
    """The op that a row is about."""

    index: int
    op: str
    module: str
    source: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Findings:
    """What was found about it. `failure` None: nothing."""

    compared: int
    rtl_mismatches: int
    blame: Blame = Blame.NONE
    failure: Failure | None = None
    torch_max_error: float | None = None
    torch_bound: float | None = None
    drift: Drift | None = None
    unbounded: int = 0
    zeros: int = 0


def subject_of(case: Case, problem: Problem) -> Subject:
    """The case as its row names it; a product's operands as the product has them."""
    call, shapes = problem.call, case.shapes()
    if isinstance(call, MatmulCall):
        shapes = (tuple(call.a.shape), tuple(call.b.shape))
    return Subject(case.index, case.op, case.module, case.source, dtype_text(case, problem), shapes)


def dtype_text(case: Case, problem: Problem) -> str:
    """The type of the first operand and of the first result, once when they are the same."""
    given = next((NPU_TYPES.get(tensor.dtype) for _, tensor in case.tensors()), None)
    if isinstance(problem.call, MatmulCall):
        given = problem.call.operand
    made = next((output.dtype for output in problem.outputs if output is not None), None)
    names = [dtype.name.lower() for dtype in (given, made) if dtype is not None]
    return "→".join(dict.fromkeys(names))


def row_of(
    subject: Subject, trial: Trial, found: Findings, where: BackendName, config: HwConfig
) -> OpRow:
    """The row. A device that stopped early has fewer records: its cycles are those it took."""
    cost = cost_of(trial.packets, None if trial.rtl is None else trial.rtl.records, config)
    return OpRow(
        index=subject.index,
        op=subject.op,
        module=subject.module,
        source=subject.source,
        where=where,
        dtype=subject.dtype,
        shapes=subject.shapes,
        elements_compared=found.compared,
        rtl_vs_cmodel_mismatches=None if trial.rtl is None else found.rtl_mismatches,
        torch_max_error=found.torch_max_error,
        torch_bound=found.torch_bound,
        cycles=cost.cycles,
        macs=cost.macs,
        utilisation=cost.utilisation,
        status="pass" if found.failure is None else "fail",
        blame=found.blame.value,
        failure=found.failure,
        packets=cost.packets,
        dram_bytes=cost.dram_bytes,
        compulsory_bytes=trial.compulsory_bytes,
        bound_by=cost.bound_by,
        drift=found.drift,
        unbounded=found.unbounded,
        zeros=found.zeros,
    )


def address_of(view: TensorView, element: tuple[int, ...]) -> int:
    """The first byte of an element."""
    steps = sum(at * step for at, step in zip(element, view.strides, strict=True))
    return view.address + steps * DTYPE_BYTES[view.dtype]


def failure_of(finding: Finding, cycle: int | None, detail: str) -> Failure:
    """A finding as the result states it."""
    return Failure(
        element=finding.element,
        tile=finding.tile,
        expected_bits=f"{finding.expected_bits:#x}",
        actual_bits=f"{finding.actual_bits:#x}",
        expected=finding.expected,
        actual=finding.actual,
        cycle=cycle,
        detail=detail,
        output=finding.output,
    )


def failed(row: OpRow, blame: Blame, failure: Failure) -> OpRow:
    """The row as one of an op that failed."""
    update = {"status": "fail", "blame": blame.value, "failure": failure}
    return OpRow.model_validate({**dict(row), **update})


def also(failure: Failure, text: str) -> Failure:
    """The failure with another fact in its detail."""
    return failure.model_copy(update={"detail": f"{failure.detail}; {text}"})


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
