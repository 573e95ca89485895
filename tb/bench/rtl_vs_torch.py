# SPDX-License-Identifier: Apache-2.0
"""CPU time of the RTL's simulation ÷ that of torch on one thread, for fp32 512³: of the build that
every run uses (`check`); in notes, of the build without assertions and random state (`fast`), and
of that with a profile (`fast-pgo`), as long runs have it."""

from __future__ import annotations

from functools import partial

import torch

from tb.bench.device import rtl_bench, square_matmul
from tb.bench.measure import Measurement, Note, interleaved, timed

SIZE = 512
_TORCH_REPEATS = 100


def measure(rounds: int, note: Note) -> Measurement:
    """The simulator's process against the same product in torch."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(SIZE, SIZE, generator=generator) for _ in range(2))
    out = torch.empty(SIZE, SIZE)

    def by_torch() -> None:
        for _ in range(_TORCH_REPEATS):
            torch.mm(a, b, out=out)

    found: dict[str, Measurement] = {}
    for variant in ("fast", "fast-pgo", "check"):
        with rtl_bench(variant) as bench:
            packet = square_matmul(bench, SIZE)
            cycles = bench.run(packet).busy_cycles
            by_rtl = partial(timed, partial(bench.run, packet), bench.cpu_seconds)
            found[variant] = interleaved(by_rtl, lambda: timed(by_torch) / _TORCH_REPEATS, rounds)
            seconds = by_rtl()
            rates = f"{cycles / seconds / 1e3:.0f} kcycles/s, {SIZE**3 / seconds / 1e6:.0f} MMAC/s"
            note(f"{variant}: {found[variant].value:.0f} times torch's CPU time, {rates}")
    return found["check"]
