# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in the RTL of the whole NPU: MUTANT=NAME activates one of them in a run.

Each names the run in which it must be caught. Some are lines that a unit bench catches as well
(tb.unit.mutant_table): here nothing but packets and the pins decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.blocks.checks import CHECKS
from tb.mutants.blocks.clocks import CLOCKS
from tb.mutants.blocks.commands import COMMANDS
from tb.mutants.blocks.engines import ENGINES
from tb.mutants.blocks.programs import PROGRAMS
from tb.mutants.blocks.registers import REGISTERS
from tb.mutants.blocks.sizes import SIZES
from tb.mutants.planted import PlantedMutant

PLANTED: Final[Mapping[str, PlantedMutant]] = {
    **COMMANDS,
    **CHECKS,
    **PROGRAMS,
    **ENGINES,
    **CLOCKS,
    **REGISTERS,
    **SIZES,
}
"""By name, as MUTANT= takes it."""
