# SPDX-License-Identifier: Apache-2.0
"""Runs the gather bench: `python -m tb.unit.gather.run --bus 256 --seed 1`. Knows what it is made
of and nothing of what it finds."""

from __future__ import annotations

import sys
from pathlib import Path

from tb.unit.block import BlockResult, block_main, run_block
from tb.unit.model import Bench, build_model, check_bus, rtl_sources
from tb.unit.mutants import mutant_arguments, mutant_sources

_FOLDER = Path(__file__).parent
_TOP = "gather_bench"
_RTL_FOLDERS = ("pkg", "fpu", "common", "mem", "move", "gather")
# The memory with everything around it is the memory bench's, number formats those of the
# arithmetic benches.
_INCLUDE = (_FOLDER.parent / "mem", _FOLDER.parent / "fp")
_ROUNDS = 20


def run_gather(
    bus_bits: int, seed: int = 1, rounds: int = _ROUNDS, mutant: int | None = None
) -> BlockResult:
    """Build and run the bench; figures are cycles per beat or element at DRAM latency 100.

    With `mutant` the RTL has the wrong lines of tb.unit.mutants, and that one is active.
    InputError: an argument out of range. InfrastructureError: no tools, a bench that dies.
    """
    check_bus(bus_bits)
    bench = Bench(
        name=f"gather{bus_bits}",
        folder=_FOLDER,
        top=_TOP,
        sources=(
            *rtl_sources(_RTL_FOLDERS, mutant_sources("gather", mutant)),
            _FOLDER / f"{_TOP}.sv",
        ),
        parameters={"BusBits": str(bus_bits)},
        defines=(f"BUS_BITS={bus_bits}",),
        include=_INCLUDE,
    )
    arguments = mutant_arguments("gather", mutant)
    return run_block(build_model(bench), bus_bits, seed, rounds, arguments)


if __name__ == "__main__":
    sys.exit(block_main("gather", run_gather, _ROUNDS))
