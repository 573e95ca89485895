# SPDX-License-Identifier: Apache-2.0
"""Cycles/s under cocotb, while Python sleeps on the interrupt, ÷ in a bare C++ loop.

Both sides run the same binary: once with cocotb inside, once as a server.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from driver.config import HwConfig
from driver.errors import VerdictError
from tb.bench._product import ProductServer, TimedCommand, binary_of, default_config
from tb.bench.measure import Measurement, Note, summary
from tb.sim.cocotb_run import CocotbRun, run_cocotb

RESULT = "execution.json"
"""Left in the run's folder by tb/bench/_sleeping.py."""


def _under_cocotb(config: HwConfig, binary: Path) -> TimedCommand:
    with tempfile.TemporaryDirectory(prefix="npu-bench-") as name:
        run = CocotbRun(
            binary=binary,
            module="tb.bench._sleeping",
            tests=("sleeps_until_the_interrupt",),
            folder=Path(name),
            config=config,
            timeout_s=600,
        )
        result = run_cocotb(run)
        if not result.passed:
            raise VerdictError(f"the timed test failed: {dict(result.failures)}")
        return TimedCommand(**json.loads((run.folder / RESULT).read_text()))


def measure(rounds: int, note: Note) -> Measurement:
    """The same product both ways, in turn."""
    config = default_config()
    binary = binary_of(config, "cocotb-fast")
    device = ProductServer(config, binary)
    ratios: list[float] = []
    try:
        for _ in range(rounds):
            bare = device.execute()
            inside = _under_cocotb(config, binary)
            speeds = [taken.cycles / taken.cpu_s for taken in (bare, inside)]
            ratios.append(speeds[1] / speeds[0])
            note(f"bare {speeds[0]:,.0f} cycles/s, under cocotb {speeds[1]:,.0f} cycles/s")
    finally:
        device.close()
    return summary(ratios)
