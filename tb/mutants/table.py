# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in the RTL of the whole NPU: MUTANT=NAME activates one of them in a run.

Each names the run in which it must be caught. Some are lines that a unit bench catches as well
(tb.unit.mutant_table): here nothing but packets and the pins decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from driver.errors import InputError
from tb.mutants.blocks.clocks import CLOCKS
from tb.mutants.blocks.commands import COMMANDS
from tb.mutants.blocks.engines import ENGINES
from tb.mutants.blocks.programs import PROGRAMS
from tb.mutants.blocks.registers import REGISTERS
from tb.mutants.expression import write_sources
from tb.mutants.planted import PlantedMutant
from tb.sim.spec import BUILD_ROOT, FILELIST, read_filelist

PLANTED: Final[Mapping[str, PlantedMutant]] = {
    **COMMANDS,
    **PROGRAMS,
    **ENGINES,
    **CLOCKS,
    **REGISTERS,
}
"""By name, as MUTANT= takes it."""


def planted_argument(name: str) -> str:
    """The argument of a simulator with planted mutants that activates one. InputError: no such."""
    if name not in PLANTED:
        raise InputError("command line", "mutant", name, f"one of {', '.join(PLANTED)}")
    return f"+{_plusarg(name)}"


@cache
def planted_sources() -> Mapping[Path, Path]:
    """Source of the RTL → the same with every mutant of the table selectable."""
    mutants = {_plusarg(name): one.mutant for name, one in PLANTED.items()}
    written = write_sources(mutants, BUILD_ROOT.parent / "mutants")
    listed = {path.name: path for path in read_filelist(FILELIST)}
    return {listed[name]: path for name, path in written.items()}


def _plusarg(name: str) -> str:
    return f"mutant.{name}."  # the full stop: none is the beginning of another
