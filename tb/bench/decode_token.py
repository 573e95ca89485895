# SPDX-License-Identifier: Apache-2.0
"""Share of the bus's cycles that move data in the products of one token, Qwen2.5-0.5B. Exact.

The seven products of a decoder layer with one row, weights in bf16; the note has int4 beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tb.bench._model import OpCost, cost_of_cases
from tb.bench.measure import Measurement, Note
from tb.ops.case import Case

_SIZES = ((896, 896), (896, 128), (896, 128), (896, 896), (896, 4864), (896, 4864), (4864, 896))
"""(inputs, outputs) of the query, key, value, output, gate, up and down projections."""
_GROUP = 64


def _cases() -> list[Case]:
    generator = torch.Generator().manual_seed(1)
    cases = []
    for index, (depth, width) in enumerate(_SIZES):
        x = torch.randn(1, depth, generator=generator).bfloat16()
        weight = torch.randn(width, depth, generator=generator).bfloat16()
        cases.append(Case(index, "aten.linear.default", (x, weight), "bf16"))
    for index, (depth, width) in enumerate(_SIZES):
        x = torch.randn(1, depth, generator=generator).bfloat16()
        packed = torch.randint(-(2**31), 2**31, (depth // 8, width), generator=generator).int()
        scales = torch.rand(depth // _GROUP, width, generator=generator).bfloat16()
        call = (x, packed, scales, _GROUP)
        cases.append(Case(len(_SIZES) + index, "npu.int4_mm.default", call, "int4"))
    return cases


def _busy(costs: Sequence[OpCost]) -> float:
    return sum(c.moved_bytes / c.bus_bytes for c in costs) / sum(c.cycles for c in costs)


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    costs = list(cost_of_cases(_cases()))
    wide, narrow = costs[: len(_SIZES)], costs[len(_SIZES) :]
    cycles = [sum(cost.cycles for cost in side) for side in (wide, narrow)]
    note(f"bf16 {cycles[0]:,} cycles, bus busy {_busy(wide):.1%}")
    note(f"int4 {cycles[1]:,} cycles, {cycles[1] / cycles[0]:.2f} × bf16, busy {_busy(narrow):.1%}")
    return Measurement(_busy(wide), 0.0)
