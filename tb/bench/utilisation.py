# SPDX-License-Identifier: Apache-2.0
"""Share of the array's multiply-adds that fp32 512³ uses, from doorbell to done. Exact."""

from __future__ import annotations

from driver.isa import csr
from tb.bench.measured import (
    SIZE,
    BenchDevice,
    Measured,
    Note,
    binary_of,
    default_config,
    matmul_packet,
)


def measure(rounds: int, note: Note) -> Measured:
    """One round: cycles do not vary."""
    del rounds
    config = default_config()
    device = BenchDevice(config, binary_of(config, "fast"))
    try:
        device.execute(matmul_packet())
        cycles = device.backend.read_csr(csr.BUSY_CYCLES_LO)
    finally:
        device.close()
    note(f"{cycles:,} busy cycles for {SIZE}³ on {config.array_size}×{config.array_size}")
    return Measured(SIZE**3 / config.array_size**2 / cycles, 0.0)
