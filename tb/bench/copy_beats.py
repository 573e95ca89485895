# SPDX-License-Identifier: Apache-2.0
"""Read beats ÷ busy cycles of a 64 KiB COPY, doorbell to done. Exact."""

from __future__ import annotations

import numpy as np

from driver.isa import DType, Opcode, Packet
from driver.isa.codec import flag_word
from tb.bench.device import rtl_bench
from tb.bench.measure import Note, Value

COPY_BYTES = 64 * 1024


def measure(rounds: int, note: Note) -> Value:
    """One round: cycles do not vary. The command's fetch and completion count as busy, too."""
    del rounds
    data = np.arange(COPY_BYTES // 4, dtype=np.int32)
    with rtl_bench() as bench:
        source, target = bench.device.upload(data), bench.device.alloc(COPY_BYTES)
        flags = flag_word(DType.INT32, DType.INT32)
        packet = Packet(Opcode.COPY, flags, source, 0, target, (data.size, 0, 0, 0, 0, 0, 0, 0))
        counted = bench.run(packet)
        note(f"{counted.read_beats:,} read beats in {counted.busy_cycles:,} busy cycles")
        return Value(counted.read_beats / counted.busy_cycles, 0.0)
