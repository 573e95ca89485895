# SPDX-License-Identifier: Apache-2.0
"""Read beats ÷ busy cycles that another 64 KiB add to a COPY: the rate without the latencies."""

from __future__ import annotations

from tb.bench.copy_beats import COPY_BYTES, copied
from tb.bench.device import rtl_bench
from tb.bench.measure import Measurement, Note


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    with rtl_bench() as bench:
        short, long = copied(bench, COPY_BYTES), copied(bench, 2 * COPY_BYTES)
        beats = long.read_beats - short.read_beats
        cycles = long.busy_cycles - short.busy_cycles
        note(f"{beats:,} more read beats in {cycles:,} more busy cycles")
        return Measurement(beats / cycles, 0.0)
