# SPDX-License-Identifier: Apache-2.0
"""Runs the memory bench: `python -m tb.unit.mem.run --bus 256 --seed 1`. Owns nothing but the
name of the bench."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tb.unit.block import BlockResult, block_main, run_block
from tb.unit.mem.build import build_bench

_ROUNDS = 20


def run_mem(
    bus_bits: int, seed: int = 1, rounds: int = _ROUNDS, instead: Mapping[str, Path] | None = None
) -> BlockResult:
    """Build and run the bench; figures are beats per cycle at DRAM latency 100.

    InputError: an argument out of range. InfrastructureError: no tools, a bench that dies.
    """
    return run_block(build_bench(bus_bits, instead), bus_bits, seed, rounds)


if __name__ == "__main__":
    sys.exit(block_main("mem", run_mem, _ROUNDS))
