# SPDX-License-Identifier: Apache-2.0
"""Millions of cycles of a pass of LeNet on 64 images, op by op, with what bus and array allow."""

from __future__ import annotations

from tb.bench._model import cost_of_model
from tb.bench.measure import Measurement, Note
from workloads.lenet import build

_SEED = 1


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    module, inputs = build(_SEED, None)
    total = 0
    for cost in cost_of_model(module, inputs, "lenet"):
        note(str(cost))
        total += cost.cycles
    return Measurement(total / 1e6, 0.0)
