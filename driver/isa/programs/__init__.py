# SPDX-License-Identifier: Apache-2.0
"""The vector programs: one file per family. Importing this package assembles all of them.

A program's number is its place in the order of FAMILIES; numbers are not stable between versions
of the instruction set, names are.
"""

from driver.isa.assembler import Catalogue
from driver.isa.programs import (
    activations,
    arithmetic,
    compare,
    composite,
    division,
    exponentials,
    functions,
    gelu,
    long,
    long_floats,
    long_rows,
    losses,
    optimizers,
    order,
    power,
    quantisation,
    random,
    reductions,
    softmax,
    trigonometry,
)

FAMILIES = (
    arithmetic,
    compare,
    reductions,
    composite,
    functions,
    exponentials,
    power,
    activations,
    gelu,
    softmax,
    division,
    trigonometry,
    quantisation,
    long,
    long_floats,
    long_rows,
    random,
    order,
    losses,
    optimizers,
)
"""Modules in the order of their programs' numbers."""

_CATALOGUE = Catalogue(module.FAMILY for module in FAMILIES)
PROGRAMS = _CATALOGUE.programs
PROGRAM_NAMES = tuple(PROGRAMS)
"""By number."""
CONSTANTS = _CATALOGUE.constants

__all__ = ["CONSTANTS", "FAMILIES", "PROGRAMS", "PROGRAM_NAMES"]
