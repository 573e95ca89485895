# SPDX-License-Identifier: Apache-2.0
"""The programs of several families, assembled, and where they lie in program memory."""

from __future__ import annotations

from collections.abc import Iterable

from driver.isa.assembler import Family, assembled
from driver.isa.image import PROGRAM_RAM, starts
from driver.isa.micro import VectorProgram


class Catalogue:
    """All programs of some families, assembled, and the line at which each begins when they lie one
    behind the other.
    """

    def __init__(self, families: Iterable[Family]) -> None:
        self.programs: dict[str, VectorProgram] = {}
        for family in families:
            for declaration in family.declared:
                name = declaration.name
                assert name not in self.programs, f"two programs named {name}"
                self.programs[name] = assembled(declaration, family.name)
        lines = starts(tuple(self.programs.values()))
        assert not lines or lines[-1] < PROGRAM_RAM
        self.lines = dict(zip(self.programs, lines, strict=True))
