# SPDX-License-Identifier: Apache-2.0
"""Speed of the bare C++ loop with cocotb's public pins ÷ that of the model without VPI."""

from __future__ import annotations

from tb.bench.measured import (
    BenchDevice,
    Measured,
    Note,
    binary_of,
    default_config,
    matmul_packet,
    summary,
)


def measure(rounds: int, note: Note) -> Measured:
    """The same product on both models, in turn."""
    config = default_config()
    devices = [BenchDevice(config, binary_of(config, name)) for name in ("fast", "cocotb-fast")]
    ratios: list[float] = []
    try:
        for _ in range(rounds):
            plain, public = (device.execute(matmul_packet()) for device in devices)
            assert plain.cycles == public.cycles
            ratios.append(plain.cpu_s / public.cpu_s)
            note(f"without VPI {plain.cpu_s:.3f} s, with public pins {public.cpu_s:.3f} s")
    finally:
        for device in devices:
            device.close()
    return summary(ratios)
