# SPDX-License-Identifier: Apache-2.0
"""Share of the array's multiply-adds that fp32 512³ uses, from doorbell to done. Exact."""

from __future__ import annotations

from tb.bench.device import rtl_bench, square_matmul
from tb.bench.measure import Measurement, Note

SIZE = 512


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    with rtl_bench() as bench:
        cycles = bench.run(square_matmul(bench, SIZE)).busy_cycles
        note(f"{cycles:,} busy cycles for {SIZE}³ on {bench.array_size}×{bench.array_size}")
        return Measurement(SIZE**3 / bench.array_size**2 / cycles, 0.0)
