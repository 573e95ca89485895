# SPDX-License-Identifier: Apache-2.0
"""Runs the vector bench: `python -m tb.unit.vector.run --bus 256 --seed 1`. Knows what it is made
of and nothing of what it finds."""

from __future__ import annotations

import sys
from pathlib import Path

from driver.errors import InputError
from tb.sim.spec import REPOSITORY
from tb.unit.block import BlockResult, block_main, run_block
from tb.unit.model import Bench, build_model, check_bus, rtl_sources
from tb.unit.mutants import mutant_arguments, mutant_sources

LANES = {128: 4, 256: 16, 512: 8}
"""Physical lanes for each bus width, so that the bench of all widths sees every number."""
FMA_LATENCIES = {128: 1, 256: 4, 512: 8}
"""Likewise, the ends of the range and the usual one."""

_FOLDER = Path(__file__).parent
_TOP = "vector_bench"
_RTL_FOLDERS = ("pkg", "fpu", "common", "mem", "move", "vector")
# The memory with everything around it is the memory bench's, number formats those of the
# arithmetic benches, and the programs are the generated tables.
_UNIT = _FOLDER.parent
_INCLUDE = (_UNIT, _UNIT / "mem", _UNIT / "fp", REPOSITORY / "golden" / "cmodel")
_ROUNDS = 20


def run_vector(
    bus_bits: int,
    seed: int = 1,
    rounds: int = _ROUNDS,
    mutant: int | None = None,
    lanes: int | None = None,
) -> BlockResult:
    """Build and run the bench; figures are cycles per vector at DRAM latency 100.

    With `mutant` the RTL has the wrong lines of tb.unit.mutants, and that one is active.
    InputError: an argument out of range. InfrastructureError: no tools, a bench that dies.
    """
    check_bus(bus_bits)
    chosen = LANES[bus_bits] if lanes is None else lanes
    if chosen not in LANES.values():
        raise InputError("command line", "lanes", chosen, "4, 8 or 16")
    parameters = {
        "BusBits": bus_bits,
        "VectorLanes": chosen,
        "FmaLatency": FMA_LATENCIES[bus_bits],
    }
    bench = Bench(
        name=f"vector{bus_bits}x{chosen}",
        folder=_FOLDER,
        top=_TOP,
        sources=(
            *rtl_sources(_RTL_FOLDERS, mutant_sources("vector", mutant)),
            _FOLDER / f"{_TOP}.sv",
        ),
        parameters={name: str(value) for name, value in parameters.items()},
        defines=(f"BUS_BITS={bus_bits}",),
        include=_INCLUDE,
    )
    arguments = mutant_arguments("vector", mutant)
    return run_block(build_model(bench), bus_bits, seed, rounds, arguments)


if __name__ == "__main__":
    sys.exit(block_main("vector", run_vector, _ROUNDS))
