# SPDX-License-Identifier: Apache-2.0
"""What an op on PyTorch's device "npu" costs the host: a small add, its program remembered."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tb.bench.measure import Measurement, Note, own_cpu_seconds, summary, timed

_CALLS = 300
_WARM = 30
_SIZE = 16
_MICROSECONDS = 1e6


def _cost_us(call: Callable[[], object]) -> float:
    for _ in range(_WARM):
        call()

    def calls() -> None:
        for _ in range(_CALLS):
            call()

    return timed(calls, own_cpu_seconds) / _CALLS * _MICROSECONDS


def measure(rounds: int, note: Note) -> Measurement:
    """CPU time of `torch.add(x, y, out=z)` in µs, the registers' model of the cmodel included."""
    torch.set_num_threads(1)
    x, y, z = (torch.zeros(_SIZE, _SIZE, device="npu") for _ in range(3))
    others = {"x + y": lambda: x + y, "x @ y": lambda: x @ y, "softmax": lambda: x.softmax(-1)}
    for name, call in others.items():
        note(f"{name}: {_cost_us(call):.0f} µs")
    note(f"an empty tensor: {_cost_us(lambda: torch.empty_like(x)):.1f} µs")
    return summary([_cost_us(lambda: torch.add(x, y, out=z)) for _ in range(rounds)])
