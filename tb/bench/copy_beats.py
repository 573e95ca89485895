# SPDX-License-Identifier: Apache-2.0
"""Read beats ÷ busy cycles of a 64 KiB COPY, doorbell to done. Exact."""

from __future__ import annotations

from driver.isa import DType, Opcode, Packet, csr
from driver.isa.codec import flag_word
from tb.bench import measured
from tb.bench.measured import Measured, Note

COPY_BYTES = 64 * 1024


def measure(rounds: int, note: Note) -> Measured:
    """One round: cycles do not vary. Latency, decode and completion count as busy, too."""
    del rounds
    config = measured.default_config()
    device = measured.BenchDevice(config, measured.binary_of(config, "fast"))
    flags = flag_word(DType.FP32, DType.FP32, "IRQ")
    params = (COPY_BYTES // 4, 0, 0, 0, 0, 0, 0, 0)
    try:
        device.execute(Packet(Opcode.COPY, flags, measured.A, 0, measured.C, params))
        beats = device.backend.read_csr(csr.READ_BEATS_LO)
        busy = device.backend.read_csr(csr.BUSY_CYCLES_LO)
    finally:
        device.close()
    note(f"{beats:,} read beats in {busy:,} busy cycles")
    return Measured(beats / busy, 0.0)
