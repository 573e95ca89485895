# SPDX-License-Identifier: Apache-2.0
"""Runs the bench of the command processor: `python -m tb.unit.ctrl.run --bus 256 --seed 1`. Knows
what it is made of and nothing of what it finds."""

from __future__ import annotations

import sys
from pathlib import Path

from tb.sim.spec import REPOSITORY
from tb.unit.block import BlockResult, block_main, run_block
from tb.unit.model import Bench, build_model, check_bus, rtl_sources
from tb.unit.mutants import mutant_arguments, mutant_sources

_FOLDER = Path(__file__).parent
_RTL_FOLDERS = ("pkg", "common", "csr", "gen", "ctrl")
# Numbers and layouts come from what driver/isa and the registers' description generate.
_INCLUDE = (_FOLDER.parent, REPOSITORY / "golden" / "cmodel", REPOSITORY / "rtl" / "csr" / "gen")
_MEMORY = {"MemBase": "64'h500100000", "MemLimit": "64'h500200000"}
_ROUNDS = 40


def run_ctrl(
    bus_bits: int, seed: int = 1, rounds: int = _ROUNDS, mutant: int | None = None
) -> BlockResult:
    """Build and run the bench: 100 batches of random packets a round. Figures are the cycles in the
    completion records of two commands.

    With `mutant` the RTL has the wrong lines of tb.unit.mutants, and that one is active.
    InputError: an argument out of range. InfrastructureError: no tools, a bench that dies.
    """
    check_bus(bus_bits)
    bench = Bench(
        name=f"ctrl{bus_bits}",
        folder=_FOLDER,
        top="ctrl_bench",
        sources=(
            *rtl_sources(_RTL_FOLDERS, mutant_sources("ctrl", mutant)),
            _FOLDER / "ctrl_bench.sv",
        ),
        parameters={"BusBits": str(bus_bits), **_MEMORY},
        defines=(f"BUS_BITS={bus_bits}",),
        include=_INCLUDE,
    )
    arguments = mutant_arguments("ctrl", mutant)
    return run_block(build_model(bench), bus_bits, seed, rounds, arguments)


if __name__ == "__main__":
    sys.exit(block_main("ctrl", run_ctrl, _ROUNDS))
