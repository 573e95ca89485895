# SPDX-License-Identifier: Apache-2.0
"""Read beats ÷ busy cycles of a 64 KiB COPY, doorbell to done. Exact.

Fetch, read latency, write latency and completion record are in it: at latency 100 about 250 cycles
that no engine can avoid in a single command, so that one COPY stays below 1 however fast its
engine is; the note has that bound. `copy_rate` has what the engine itself reaches, `copy_queue`
what a queue of COPYs does.
"""

from __future__ import annotations

import numpy as np

from driver.isa import DType, Opcode, Packet
from driver.isa.codec import flag_word
from tb.bench.device import Counters, DeviceBench, rtl_bench
from tb.bench.measure import Measurement, Note

COPY_BYTES = 64 * 1024


_LATENCIES = 2
"""DRAM latencies that one COPY cannot hide: its first read and its last write."""


def copied(bench: DeviceBench, size_bytes: int, commands: int = 1) -> Counters:
    """The device's count of that many contiguous COPYs in one queue, each to a place of its own."""
    data = np.arange(size_bytes // 4, dtype=np.int32)
    source = bench.device.upload(data)
    flags = flag_word(DType.INT32, DType.INT32)
    targets = [bench.device.alloc(size_bytes) for _ in range(commands)]
    return bench.run(
        *(
            Packet(Opcode.COPY, flags, source.address, 0, target.address, (data.size,))
            for target in targets
        )
    )


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary. The command's fetch and completion count as busy, too."""
    del rounds
    with rtl_bench() as bench:
        counted = copied(bench, COPY_BYTES)
        latency = bench.device.config.dram.latency_cycles
        bound = counted.read_beats / (counted.read_beats + _LATENCIES * latency)
        note(
            f"{counted.read_beats:,} read beats in {counted.busy_cycles:,} busy cycles; "
            f"bound of one COPY at latency {latency}: {bound:.3f}"
        )
        return Measurement(counted.read_beats / counted.busy_cycles, 0.0)
