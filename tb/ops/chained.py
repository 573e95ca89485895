# SPDX-License-Identifier: Apache-2.0
"""Judges a capsule's run in device memory.

Each op is judged as a case of its own, on the operands that the chain really gave it: RTL against
cmodel bit for bit, the result against torch's answer to those operands within the op's bound. How
far the results have moved from those that torch recorded is judged by tb.ops.drift's budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from driver.capture import Capsule, Op, TensorRef
from driver.errors import UnsupportedOp
from driver.results import Drift, OpRow
from golden.formats import Floats
from golden.judge import judge
from tb.checks import no_element
from tb.ops.case import Case
from tb.ops.chain import Chain, Values, recorded_values
from tb.ops.drift import (
    PerturbedRuns,
    distance,
    distances,
    drift_between,
    magnitude,
    multiple,
)
from tb.ops.host_writes import HostTensor, HostWrites
from tb.ops.images import buffer_of, draws_numbers
from tb.ops.placing import Placed
from tb.ops.recorded import prove
from tb.ops.rows import CpuOp, failed, refused
from tb.ops.session import Session
from tb.ops.stopped import naming


@dataclass(frozen=True)
class ChainedOp:
    """An op of a capsule, to run on what the ops before it left in memory."""

    index: int
    capsule: Capsule
    op: Op


class ChainedRun:
    """All ops of one capsule in order, on one session's devices."""

    def __init__(self, session: Session, capsule: Capsule) -> None:
        self._session, self._capsule = session, capsule
        self.chain = Chain(session.pair, capsule, session.spec.seed)
        self._perturbed: PerturbedRuns | None = None
        self._host_writes = HostWrites(capsule)
        self._by_host: list[HostTensor] = []
        self._results = self._undecided = 0
        """Results that the RTL and torch have, and those whose drift nothing bounds."""
        self._first = 0
        """The chain's first step."""
        self._together = True
        """The devices' sequence numbers are in step."""

    def rows(self, steps: Sequence[ChainedOp], wanted: set[int]) -> Iterator[OpRow | CpuOp]:
        """Run up to the last wanted step, and answer for the wanted ones. The RTL runs only these:
        for the others the cmodel's results are its memory's.

        Drift has a budget where everything from the first op on is judged: in a run of the whole
        chain, of a part that begins where the chain does, and of a shard.
        """
        numbers = {step.op.index: step.index for step in steps}
        last, self._first = max(wanted), steps[0].index
        whole = wanted >= {step.index for step in steps if step.index <= last}
        if whole or self._session.spec.shard is not None:
            self._perturbed = PerturbedRuns(self._capsule, self._session.spec.seed)
        for op in self._capsule.ops:
            index = numbers.get(op.index)
            self._take_changes(op)
            if index is not None:
                if index in wanted:
                    prove(self._capsule, op)
                row = self._step(op, index, wanted=index in wanted)
                if row is not None:
                    yield row
            self._host_writes.after(op)
            self._release(op)
            if index == last != steps[-1].index:
                break
        else:
            self._by_host += [HostTensor(None, ref) for ref in self._host_writes.in_results()]

    def remarks(self) -> list[str]:
        """What the rows do not say: what was not computed here, or not bounded."""
        found = []
        if self._by_host:
            first, total = self._by_host[0].op, sum(one.size_bytes for one in self._by_host)
            place = f"{first.op} of {first.source or 'the model'}" if first else "its result"
            found.append(
                f"the model's own code on the CPU wrote {len(self._by_host)} tensors, {total:,} "
                f"bytes, that no op made, first before {place}: taken as they were recorded"
            )
        if self._undecided:
            found.append(
                f"drift: {self._undecided:,} of {self._results:,} results have no budget, or one "
                "beyond the result's own magnitude"
            )
        return found

    def _take_changes(self, op: Op) -> None:
        """Bring all memories to what the model's own code wrote to its own."""
        self._by_host += [HostTensor(op, ref) for ref in self._host_writes.made(op)]
        for ref in self._host_writes.changed(op):
            self.chain.load(ref)
            self._by_host.append(HostTensor(op, ref))
            if self._perturbed is not None:
                self._perturbed.release(buffer_of(ref))

    def _release(self, op: Op) -> None:
        for buffer in self.chain.release(op):
            if self._perturbed is not None:
                self._perturbed.release(buffer)

    def _step(self, op: Op, index: int, *, wanted: bool) -> OpRow | CpuOp | None:
        case = self.chain.case(op, index)
        try:
            case.check()
            placed = self.chain.place(op, case.call.written())
        except UnsupportedOp as error:
            outcome = refused(case, error, allow_cpu=self._session.spec.allow_cpu)
            self.chain.compute_on_cpu(op)
            if self._perturbed is not None:
                self._perturbed.step(op)
            return outcome if wanted else None
        if not wanted and self._session.rtl is not None:
            self._run_model_only(op, case, placed)
            return None
        row = self._run(op, case, placed)
        return row if wanted else None

    def _run_model_only(self, op: Op, case: Case, placed: Placed) -> None:
        self._session.pair.model_only(placed.packets)
        self._together = False
        if self._perturbed is not None:
            bits = tuple(
                None if view is None else self._session.pair.elements(view)
                for view in placed.results
            )
            verdict = judge(case.call, bits, None, self._session.config.array_size)
            self._perturbed.step(op, () if draws_numbers(op) else verdict.reaches)
        self._after_draw(op)

    def _after_draw(self, op: Op) -> None:
        """A random op has a verdict of its own; what follows it works on the numbers that torch
        drew and recorded, which is what the chain computes for it on the CPU."""
        if draws_numbers(op):
            self.chain.compute_on_cpu(op)

    def _run(self, op: Op, case: Case, placed: Placed) -> OpRow:
        with naming(case):
            if not self._together:
                self._session.pair.reset()
                self._together = True
            self._session.begin(case.index)
            result = self._session.pair.execute(placed)
        self._session.count(result)
        row, verdict = self._session.judged(case, result)
        self._after_draw(op)
        return self._with_drift(op, row, verdict.reaches)

    # ------------------------------------------------------------------ drift
    def _with_drift(self, op: Op, row: OpRow, reaches: Sequence[Floats | None]) -> OpRow:
        """The row with the drift of the op's first result; it fails where one is beyond its budget.

        What is computed from a result that failed is not held against the ops that follow.
        """
        if self._perturbed is not None:
            self._perturbed.step(op, () if draws_numbers(op) else reaches)
            if row.status == "fail":
                self._perturbed.give_up(op)
        first: Drift | None = None
        for number, ref in enumerate(op.outputs):
            if ref is None or not ref.numel:
                continue
            npu, torch = self.chain.values(ref), recorded_values(self._capsule, ref)
            reach = reaches[number] if number < len(reaches) and not draws_numbers(op) else None
            budget = None if self._perturbed is None else self._perturbed.budget(ref, torch, reach)
            drift = drift_between(npu, torch, budget)
            if self._perturbed is not None:
                self._results += 1
                self._undecided += budget is None or budget > magnitude(torch) > 0
            first = first or drift
            if row.status == "pass" and budget is not None and drift.max_abs > budget:
                row = failed(row, "precision", no_element(_beyond(ref, npu, torch, budget)))
                row = row.model_copy(update={"replay_from": self._first})
                self._give_up(op)
        return row.model_copy(update={"drift": first})

    def _give_up(self, op: Op) -> None:
        if self._perturbed is not None:
            self._perturbed.give_up(op)


def _beyond(ref: TensorRef, npu: Values, torch: Values, budget: float) -> str:
    """What is said of a drift beyond its budget: the element that is furthest away."""
    at = np.unravel_index(int(np.argmax(distances(npu, torch))), ref.sizes)
    element = [int(i) for i in at]
    return (
        f"the op is right for the operands that it had here, but its result has drifted from "
        f"torch's by {distance(npu, torch):.2g}, at {element}: {npu[at]!s} for {torch[at]!s}; "
        f"{budget:.2g} is {multiple(torch.size):.2g} times what the bounds of the ops up to it "
        "explain"
    )
