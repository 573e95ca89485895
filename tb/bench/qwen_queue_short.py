# SPDX-License-Identifier: Apache-2.0
"""The layer with 16 tokens, all its commands in one queue: the least cycles that bus and array need
for its ops ÷ those that the queue takes. Exact.

`qwen_layer_short` is the same with each op alone on the device.
"""

from __future__ import annotations

from tb.bench._model import cost_of_model, cost_of_queue
from tb.bench.measure import Measurement, Note
from workloads.qwen_layer import build

_SEED = 1
_TOKENS = 16


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary. RTL and cmodel agree in every byte, or it fails."""
    del rounds
    module, inputs = build(_SEED, None, tokens=_TOKENS, dtype="bfloat16")
    bound = sum(cost.bound for cost in cost_of_model(module, inputs, "qwen_layer"))
    queue = cost_of_queue(module, inputs, "qwen_layer")
    note(f"bound {bound:,}; {queue}")
    return Measurement(bound / queue.cycles, 0.0)
