# SPDX-License-Identifier: Apache-2.0
"""Millions of cycles of a decoder layer of Qwen2.5-0.5B, 32 tokens in bf16, op by op. Exact."""

from __future__ import annotations

from tb.bench._model import cost_of_model
from tb.bench.measure import Measurement, Note
from workloads.qwen_layer import build

_SEED = 1
_TOKENS = 32


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    module, inputs = build(_SEED, None, tokens=_TOKENS, dtype="bfloat16")
    costs = list(cost_of_model(module, inputs, "qwen_layer"))
    for cost in costs:
        if cost.array_cycles:
            note(str(cost))
    cycles, bound = sum(cost.cycles for cost in costs), sum(cost.bound for cost in costs)
    note(f"{cycles:,} cycles, bound of bus and array {bound:,}: {bound / cycles:.1%}")
    return Measurement(cycles / 1e6, 0.0)
