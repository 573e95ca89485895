# SPDX-License-Identifier: Apache-2.0
"""Millions of cycles of that layer when all its commands are in one queue, and overlap. Exact.

`qwen_layer` is the sum of its ops, each alone on the device.
"""

from __future__ import annotations

from tb.bench._model import cost_of_queue
from tb.bench.measure import Measurement, Note
from workloads.qwen_layer import build

_SEED = 1
_TOKENS = 32


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary. RTL and cmodel agree in every byte, or it fails."""
    del rounds
    module, inputs = build(_SEED, None, tokens=_TOKENS, dtype="bfloat16")
    cost = cost_of_queue(module, inputs, "qwen_layer")
    note(str(cost))
    return Measurement(cost.cycles / 1e6, 0.0)
