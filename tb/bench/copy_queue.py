# SPDX-License-Identifier: Apache-2.0
"""Read beats ÷ busy cycles that eight more COPYs of 64 KiB add to a queue of eight. Exact.

The bound is above 1 by the beats of packets, which the bus reads as well; the reads of one COPY
follow those of the one before it without a gap, while that one's writes are acknowledged.
"""

from __future__ import annotations

from tb.bench.copy_beats import COPY_BYTES, copied
from tb.bench.device import rtl_bench
from tb.bench.measure import Measurement, Note

_COMMANDS = 8


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary."""
    del rounds
    with rtl_bench() as bench:
        short = copied(bench, COPY_BYTES, _COMMANDS)
        long = copied(bench, COPY_BYTES, 2 * _COMMANDS)
        beats = long.read_beats - short.read_beats
        cycles = long.busy_cycles - short.busy_cycles
        note(
            f"{beats:,} more read beats in {cycles:,} more busy cycles; bound: one beat per cycle; "
            f"the queue of {2 * _COMMANDS} as a whole: {long.read_beats / long.busy_cycles:.3f}"
        )
        return Measurement(beats / cycles, 0.0)
