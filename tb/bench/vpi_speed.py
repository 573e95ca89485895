# SPDX-License-Identifier: Apache-2.0
"""Speed of the bare C++ loop with cocotb's public pins ÷ that of the model without VPI."""

from __future__ import annotations

from tb.bench._product import ProductServer, binary_of, default_config
from tb.bench.measure import Measurement, Note, summary


def measure(rounds: int, note: Note) -> Measurement:
    """The same product on both models, in turn."""
    config = default_config()
    devices = [ProductServer(config, binary_of(config, name)) for name in ("fast", "cocotb-fast")]
    ratios: list[float] = []
    try:
        for _ in range(rounds):
            plain, public = (device.execute() for device in devices)
            assert plain.cycles == public.cycles
            ratios.append(plain.cpu_s / public.cpu_s)
            note(f"without VPI {plain.cpu_s:.3f} s, with public pins {public.cpu_s:.3f} s")
    finally:
        for device in devices:
            device.close()
    return summary(ratios)
