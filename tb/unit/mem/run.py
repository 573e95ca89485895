# SPDX-License-Identifier: Apache-2.0
"""Runs the memory bench: `python -m tb.unit.mem.run --bus 256 --seed 1`. Owns nothing but the
name of the bench."""

from __future__ import annotations

import sys

from tb.unit.block import BlockResult, block_main, run_block
from tb.unit.mem.build import build_bench
from tb.unit.mutants import mutant_arguments, mutant_sources

_ROUNDS = 20


def run_mem(
    bus_bits: int, seed: int = 1, rounds: int = _ROUNDS, mutant: int | None = None
) -> BlockResult:
    """Build and run the bench; figures are beats per cycle at DRAM latency 100.

    With `mutant` the RTL has the wrong lines of tb.unit.mutants, and that one is active.
    InputError: an argument out of range. InfrastructureError: no tools, a bench that dies.
    """
    program = build_bench(bus_bits, mutant_sources("mem", mutant))
    return run_block(program, bus_bits, seed, rounds, mutant_arguments("mem", mutant))


if __name__ == "__main__":
    sys.exit(block_main("mem", run_mem, _ROUNDS))
