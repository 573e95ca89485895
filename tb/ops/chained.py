# SPDX-License-Identifier: Apache-2.0
"""Judges a capsule's run in device memory: RTL against cmodel bit for bit, drift from torch.

An op whose bits differ is judged once more as a case of its own, on the operands that it had here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driver.capture import Capsule, Op
from driver.errors import UnsupportedOp
from driver.results import Drift, OpRow
from tb.ops.case import Case, CpuOp, module_path, refused
from tb.ops.chain import Chain, Values, recorded_values, used_tensors
from tb.ops.pair import Trial
from tb.ops.placing import Placed
from tb.ops.problem import overwritten, problem_of
from tb.ops.rows import Findings, Subject, row_of
from tb.ops.session import Session


@dataclass(frozen=True)
class Step:
    """An op of a capsule, to run on what the ops before it left in memory."""

    index: int
    capsule: Capsule
    op: Op


class ChainedRun:
    """All ops of one capsule in order, on one session's devices.

    `judge_every_step`: not only what differs is judged, but every op, on the operands it has here.
    """

    def __init__(
        self, session: Session, capsule: Capsule, *, judge_every_step: bool = False
    ) -> None:
        self._session, self._capsule = session, capsule
        self._judge_every_step = judge_every_step
        self.chain = Chain(session.pair, capsule, session.spec.seed)
        self._together = True
        """The devices' sequence numbers are in step."""

    def rows(self, steps: Sequence[Step], wanted: set[int]) -> Iterator[OpRow | CpuOp]:
        """Run up to the last wanted step, and answer for the wanted ones. The RTL runs only these:
        for the others the cmodel's results are its memory's."""
        numbers = {step.op.index: step.index for step in steps}
        last = max(wanted)
        for op in self._capsule.ops:
            index = numbers.get(op.index)
            if index is not None:
                row = self._step(op, index, judged=index in wanted)
                if row is not None:
                    yield row
            self.chain.release(op)
            if index == last:
                break

    def _step(self, op: Op, index: int, *, judged: bool) -> OpRow | CpuOp | None:
        try:
            placed = self.chain.place(op)
        except UnsupportedOp as error:
            case = self.chain.case(op, index)
            outcome = refused(case, error, allow_cpu=self._session.spec.allow_cpu)
            self.chain.compute_on_cpu(op, case)
            return outcome if judged else None
        if not judged and self._session.rtl is not None:
            self._session.pair.model_only(placed.program)
            self._together = False
            return None
        if not self._together:
            self._session.pair.reset()
            self._together = True
        early = self._judge_every_step or any(place is not None for place in overwritten(op.op))
        before = self.chain.case(op, index) if early else None
        self._session.begin(index)
        trial = self._session.pair.execute(placed.program, placed.results)
        trial = replace(trial, compulsory_bytes=placed.compulsory_bytes)
        if not judged:
            return None
        self._session.count(trial)
        return self._judged(op, index, placed, trial, before)

    def _judged(
        self, op: Op, index: int, placed: Placed, trial: Trial, before: Case | None
    ) -> OpRow:
        drift = self._drift(op)
        if self._judge_every_step or _differs(trial):
            case = before or self.chain.case(op, index)
            row = self._session.judged_row(case, problem_of(case), trial)
            return row.model_copy(update={"drift": drift})
        views = [view for view in placed.results if view is not None]
        found = Findings(sum(view.count for view in views), 0, drift=drift)
        config = self._session.config
        return row_of(self._subject(op, index), trial, found, self._session.spec.backend, config)

    def _subject(self, op: Op, index: int) -> Subject:
        given = list(used_tensors(op))
        refs = [*given[:1], *[ref for ref in op.outputs if ref is not None][:1]]
        names = [ref.npu_dtype.name.lower() for ref in refs if ref.npu_dtype is not None]
        return Subject(
            index=index,
            op=op.op,
            module=module_path(self._capsule.name, op.module),
            source=op.source,
            dtype="→".join(dict.fromkeys(names)),
            shapes=tuple(ref.sizes for ref in given),
        )

    def _drift(self, op: Op) -> Drift | None:
        """Of the op's first result; None when it has none."""
        ref = next((ref for ref in op.outputs if ref is not None), None)
        if ref is None or not ref.numel:
            return None
        return drift_between(self.chain.values(ref), recorded_values(self._capsule, ref))


def _differs(trial: Trial) -> bool:
    if trial.cmodel.fault is not None:
        return True
    if trial.rtl is None:
        return False
    pairs = zip(trial.cmodel.bits, trial.rtl.bits, strict=True)
    unequal = any(left is not None and not np.array_equal(left, right) for left, right in pairs)
    return unequal or bool(trial.stray) or trial.rtl.fault is not None


def drift_between(npu: Values, torch: Values) -> Drift:
    """How far the NPU's values are from torch's. What is not finite in both alike is no drift."""
    left, right = (np.ravel(values).astype(np.float64) for values in (npu, torch))
    both = np.isfinite(left) & np.isfinite(right)
    alike = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        error = np.where(alike, 0.0, np.where(both, np.abs(left - right), np.inf))
    largest = float(np.max(error, initial=0.0))
    scale = float(np.max(np.abs(right[both]), initial=0.0))
    relative = largest / scale if scale else (0.0 if largest == 0 else float("inf"))
    return Drift(max_abs=largest, max_rel=relative, cosine=_cosine(left[both], right[both]))


def _cosine(left: Values, right: Values) -> float:
    """By sums of their own: a BLAS would start its threads for every op."""
    norms = math.sqrt(float(np.sum(left * left)) * float(np.sum(right * right)))
    if norms == 0:
        return 1.0 if np.array_equal(left, right) else 0.0
    return float(np.clip(np.sum(left * right) / norms, -1.0, 1.0))
