# SPDX-License-Identifier: Apache-2.0
"""The checks of a LoRA training: each step next to CPU torch and, where there is an RTL, the same
step on the RTL in every bit; then the adapter saved, loaded and merged."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import torch
from peft import PeftModel

from driver.results import BackendName, Curve, OpRow, RunSpec
from tb.programs.lora_training import (
    PASSES,
    LoraTraining,
    StepMode,
    StepResult,
    differing_bits,
    relative_distance,
)
from tb.programs.runner import OpLedger, check_of, device_behind
from workloads._lora import LoraSize, adapted, passages

STEPS = (
    *([StepMode.PLAIN] * 12),
    *([StepMode.ACCUMULATED] * 4),
    *([StepMode.CHECKPOINTED] * 2),
    *([StepMode.BF16] * 2),
)
_SCORED = 2
"""Passages that no step trains on: the adapter's checks score them."""
_FALL = 4
"""The mean loss of so many last steps is below that of the first ones."""


@dataclass(frozen=True)
class LoraBudget:
    """How far a step may be from CPU torch's. Recorded, not derived: both round each op within its
    own bound, but AdamW turns the last bits of a gradient near zero into whole steps, so a
    budget from the bounds of all ops admits any adapter after some steps."""

    loss: float
    gradients: float
    """Of the norm of all gradients together."""


BUDGETS: dict[StepMode, LoraBudget] = {
    StepMode.PLAIN: LoraBudget(1e-3, 1e-2),
    StepMode.ACCUMULATED: LoraBudget(1e-3, 1e-2),
    StepMode.CHECKPOINTED: LoraBudget(1e-3, 1e-2),
    StepMode.BF16: LoraBudget(5e-2, 0.2),
}
"""With seed 1 losses are at most 3.8e-4 apart in fp32 (24 layers), 1.8e-3 in bf16 (two layers)."""
MERGED = 1e-4
"""The scores of the merged model: products in another order, over the largest score."""


@dataclass
class LoraProgram:
    """See tb.programs.runner.DeviceProgram."""

    spec: RunSpec
    size: LoraSize
    curves: list[Curve] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = OpLedger("cmodel")
        self._numbers = count()
        self._texts = passages(
            len(STEPS) * PASSES + _SCORED, self.size, self.spec.seed, self.spec.checkpoint
        )

    @property
    def planned(self) -> int:
        """Steps on each backend, the whole training, one step judged op by op, the adapter."""
        on_rtl = len(STEPS) if self.spec.backend == "rtl" else 0
        return len(STEPS) + on_rtl + 5

    def checks(self) -> Iterator[OpRow]:
        """First the training on the cmodel, then on the RTL."""
        source = "seeded random weights" if self.spec.checkpoint is None else "the checkpoint"
        self.notes.append(f"{self.size.layers} layers, {source}, passages of the documentation")
        with device_behind("cmodel", self.spec):
            results = yield from self._beside_torch()
        if self.spec.backend == "rtl":
            with device_behind("rtl", self.spec):
                yield from self._on_rtl(results)

    def _model(self) -> Any:
        return adapted(self.size, self.spec.seed, self.spec.checkpoint)

    def _passages(self, step: int) -> torch.Tensor:
        return self._texts[step * PASSES : (step + 1) * PASSES]

    # ------------------------------------------------------------------ beside CPU torch
    def _beside_torch(self) -> Generator[OpRow, None, list[StepResult]]:
        here, there = LoraTraining(self._model(), "cpu"), LoraTraining(self._model(), "npu")
        expected: list[StepResult] = []
        found: list[StepResult] = []
        for number, mode in enumerate(STEPS):
            expected.append(here.step(self._passages(number), mode))
            if number:
                found.append(there.step(self._passages(number), mode))
            else:
                with self.ledger:
                    found.append(there.step(self._passages(number), mode))
            yield self._followed(number, mode, expected[-1], found[-1])
        yield self._whole(expected, found)
        yield self._judged()
        yield self._checkpointed(there)
        yield from self._adapter(there)
        return found

    def _followed(self, number: int, mode: StepMode, torch_s: StepResult, npu: StepResult) -> OpRow:
        budget = BUDGETS[mode]
        loss = abs(npu.loss - torch_s.loss)
        gradients = relative_distance(torch_s.gradients, npu.gradients)
        ok = loss <= budget.loss and gradients <= budget.gradients
        text = f"loss {npu.loss:.6f}, torch {torch_s.loss:.6f} ({budget.loss:g} admitted); "
        text += f"gradients {gradients:.1e} apart ({budget.gradients:g} admitted)"
        return check_of(
            next(self._numbers),
            f"step {number + 1}, {mode.value}",
            self.spec,
            where="cmodel",
            compared=1 + sum(x.numel() for x in npu.gradients.values()),
            error=loss,
            bound=budget.loss,
            failure="" if ok else text,
            blame="unknown",
        )

    def _whole(self, expected: list[StepResult], found: list[StepResult]) -> OpRow:
        losses = [[step.loss for step in side] for side in (found, expected)]
        curve = Curve(model="qwen_lora", name="loss", npu=tuple(losses[0]), torch=tuple(losses[1]))
        self.curves.append(curve)
        first, last = (sum(part) / _FALL for part in (losses[0][:_FALL], losses[0][-_FALL:]))
        on_cpu = [row.op for row in self.ledger.rows() if row.where == "cpu"]
        apart = relative_distance(expected[-1].weights, found[-1].weights)
        self.notes.append(
            f"loss {first:.3f} to {last:.3f} (means of {_FALL} steps); adapters of NPU and torch "
            f"are {apart:.1e} apart; {self.ledger.on_npu} ops of the first step on the NPU, "
            f"{len(on_cpu)} on the CPU"
        )
        failure = "" if last < first else f"the loss does not fall: {first:.4f} to {last:.4f}"
        if on_cpu or not self.ledger.on_npu:
            failure = f"ops on the CPU: {', '.join(on_cpu) or 'all'}"
        compared = len(losses[0])
        name = "loss falls, all ops on the NPU"
        return self._row(name, compared, failure, blame="lowering")

    def _judged(self) -> OpRow:
        """A step of two layers at most: the judge computes each op again in float64."""
        small = LoraSize(min(self.size.layers, 2), 256, self.size.tokens, self.size.narrow)
        own = LoraTraining(adapted(small, self.spec.seed, None), "npu")
        ids = passages(PASSES, small, self.spec.seed, None)
        folder = self.spec.out / "checked"
        try:
            with torch.npu.check(folder) as report:  # type: ignore[attr-defined]
                own.step(ids, StepMode.PLAIN)
        except torch.npu.WrongResult as error:  # type: ignore[attr-defined]
            return self._row("each op of a step judged", 1, str(error), blame="lowering")
        self.notes.append(f"a step judged op by op: {report}")
        return self._row("each op of a step judged", report.elements, "")

    def _checkpointed(self, training: LoraTraining) -> OpRow:
        passage = self._texts[-1:]
        _, plain = training.gradients(passage, StepMode.PLAIN)
        _, again = training.gradients(passage, StepMode.CHECKPOINTED)
        compared, differing, first = differing_bits(plain, again)
        failure = f"{differing} elements differ, first in {first}" if differing else ""
        return self._row("checkpointing changes no bit", compared, failure)

    def _adapter(self, training: LoraTraining) -> Iterator[OpRow]:
        """Saved and loaded the adapter gives the same bits; merged the same scores."""
        training.model.eval()
        passage = self._texts[-1]
        scores = training.scores(passage)
        with TemporaryDirectory(prefix="npu-lora-") as folder:
            training.model.save_pretrained(folder)
            base = training.model.unload()
            training.model = PeftModel.from_pretrained(base, folder).to("npu").eval()
        loaded = training.scores(passage)
        same = torch.equal(scores.view(torch.int32), loaded.view(torch.int32))
        failure = "" if same else "the loaded adapter has other scores"
        yield self._row("adapter saved and loaded", scores.numel(), failure)
        training.model = training.model.merge_and_unload()
        apart = float((training.scores(passage) - scores).abs().max() / scores.abs().max())
        failure = "" if apart <= MERGED else f"scores {apart:.1e} apart, {MERGED:g} admitted"
        yield self._row("adapter merged", scores.numel(), failure, error=apart, bound=MERGED)

    def _row(self, name: str, compared: int, failure: str, **more: Any) -> OpRow:
        where: BackendName = "cmodel"
        return check_of(
            next(self._numbers),
            name,
            self.spec,
            where=where,
            compared=compared,
            failure=failure,
            **more,
        )

    # ------------------------------------------------------------------ on the RTL
    def _on_rtl(self, expected: list[StepResult]) -> Iterator[OpRow]:
        """The same training again; each step must leave the cmodel's bits."""
        training = LoraTraining(self._model(), "npu")
        self.ledger = OpLedger("rtl")  # where the run's ops are counted from now on
        for number, mode in enumerate(STEPS):
            with contextlib.nullcontext() if number else self.ledger:
                found = training.step(self._passages(number), mode)
            wanted = expected[number]
            totals = [
                differing_bits({"loss": torch.tensor(wanted.loss)}, _loss(found)),
                differing_bits(wanted.gradients, found.gradients),
                differing_bits(wanted.weights, found.weights),
            ]
            differing = sum(n for _, n, _ in totals)
            first = next((name for _, n, name in totals if n), "")
            yield check_of(
                next(self._numbers),
                f"step {number + 1}, {mode.value}",
                self.spec,
                where="rtl",
                compared=sum(n for n, _, _ in totals),
                mismatches=differing,
                failure=f"{differing} elements are not the cmodel's, first in {first}; a record of "
                "the step on the RTL (torch.npu.capture) compares each op with the cmodel"
                if differing
                else "",
                blame="rtl",
            )


def _loss(step: StepResult) -> dict[str, torch.Tensor]:
    return {"loss": torch.tensor(step.loss)}
