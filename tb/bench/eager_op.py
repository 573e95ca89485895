# SPDX-License-Identifier: Apache-2.0
"""What an op on PyTorch's device "npu" costs the host: a small add, its program remembered.

That is the CPU time of the calling thread: dispatch, signature, allocation, binding, the queue. The
commands run in a thread of the device, whose time is noted beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from tb.bench.measure import Measurement, Note, own_cpu_seconds, summary, timed

_CALLS = 300
_WARM = 30
_SIZE = 16
_MICROSECONDS = 1e6


def _cost_us(call: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    def calls() -> None:
        for _ in range(_CALLS):
            call()
        if clock is own_cpu_seconds:
            torch.npu.synchronize()  # type: ignore[attr-defined]

    for _ in range(_WARM):
        call()
    torch.npu.synchronize()  # type: ignore[attr-defined]
    return timed(calls, clock) / _CALLS * _MICROSECONDS


def measure(rounds: int, note: Note) -> Measurement:
    """CPU time of the host for `x + y` in µs, in turns with that of CPU torch."""
    torch.set_num_threads(1)
    x, y = (torch.zeros(_SIZE, _SIZE, device="npu") for _ in range(2))
    here = torch.zeros(_SIZE, _SIZE)
    others = {
        "x @ y": lambda: x @ y,
        "softmax": lambda: x.softmax(-1),
        "add_": lambda: x.add_(y),
        "an empty tensor": lambda: torch.empty_like(x),
    }
    for name, call in others.items():
        note(f"{name}: {_cost_us(call):.1f} µs")
    note(
        f"x + y and its execution by the cmodel: {_cost_us(lambda: x + y, own_cpu_seconds):.1f} µs"
    )
    pairs = [(_cost_us(lambda: x + y), _cost_us(lambda: here + here)) for _ in range(rounds)]
    cpu = summary([cpu for _, cpu in pairs])
    note(f"x + y by CPU torch: {cpu.value:.2f} µs, spread {cpu.spread:.2f}")
    return summary([npu for npu, _ in pairs])
