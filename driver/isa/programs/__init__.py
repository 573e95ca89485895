# SPDX-License-Identifier: Apache-2.0
"""The vector programs: one file per family. Importing this package assembles all of them.

A program's number is its place in the order of import below; numbers are not stable between
versions of the instruction set, names are.
"""

from driver.isa.programs import arithmetic, compare, composite, reductions
from driver.isa.programs._catalogue import CATALOGUE

FAMILIES = (arithmetic, compare, reductions, composite)
"""Modules in the order of their programs' numbers."""

PROGRAMS = CATALOGUE.programs
CONSTANTS = CATALOGUE.constants

__all__ = ["CONSTANTS", "FAMILIES", "PROGRAMS"]
