# SPDX-License-Identifier: Apache-2.0
"""Read beats ÷ busy cycles of a 64 KiB COPY, doorbell to done. Exact.

Fetch, read latency, write latency and completion record are in it: at latency 100 about 250 cycles
that no engine can avoid in a single command. `copy_rate` has what the engine itself reaches.
"""

from __future__ import annotations

import numpy as np

from driver.isa import DType, Opcode, Packet
from driver.isa.codec import flag_word
from tb.bench.device import Counters, DeviceBench, rtl_bench
from tb.bench.measure import Measurement, Note

COPY_BYTES = 64 * 1024


def copied(bench: DeviceBench, size_bytes: int) -> Counters:
    """The device's count of one contiguous COPY."""
    data = np.arange(size_bytes // 4, dtype=np.int32)
    source, target = bench.device.upload(data), bench.device.alloc(size_bytes)
    flags = flag_word(DType.INT32, DType.INT32)
    return bench.run(Packet(Opcode.COPY, flags, source.address, 0, target.address, (data.size,)))


def measure(rounds: int, note: Note) -> Measurement:
    """One round: cycles do not vary. The command's fetch and completion count as busy, too."""
    del rounds
    with rtl_bench() as bench:
        counted = copied(bench, COPY_BYTES)
        note(f"{counted.read_beats:,} read beats in {counted.busy_cycles:,} busy cycles")
        return Measurement(counted.read_beats / counted.busy_cycles, 0.0)
