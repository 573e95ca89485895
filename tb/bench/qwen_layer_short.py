# SPDX-License-Identifier: Apache-2.0
"""The same layer with 16 tokens: the least cycles of bus and array ÷ those that it takes. Exact."""

from __future__ import annotations

from tb.bench._model import cost_of_model
from tb.bench.measure import Measurement, Note
from workloads.qwen_layer import build

_SEED = 1
_TOKENS = 16


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    module, inputs = build(_SEED, None, tokens=_TOKENS, dtype="bfloat16")
    costs = list(cost_of_model(module, inputs, "qwen_layer"))
    cycles, bound = sum(cost.cycles for cost in costs), sum(cost.bound for cost in costs)
    products = [cost for cost in costs if cost.array_cycles]
    own = sum(cost.bound for cost in products) / sum(cost.cycles for cost in products)
    note(f"{cycles:,} cycles, bound {bound:,}; of the products alone {own:.1%}")
    return Measurement(bound / cycles, 0.0)
