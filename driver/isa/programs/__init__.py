# SPDX-License-Identifier: Apache-2.0
"""The vector programs: one file per family. Importing this package assembles all of them.

They lie in program memory from line 0 on, in the order of FAMILIES. Their lines are not stable
between versions of the instruction set, names are; BOOT_DIGEST says which ones a device has.
"""

from hashlib import sha256

from driver.isa.catalogue import Catalogue
from driver.isa.image import pack
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
from driver.isa.tables import table_bytes

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
"""Modules in the order of their programs' lines."""

_CATALOGUE = Catalogue(module.FAMILY for module in FAMILIES)
PROGRAMS = _CATALOGUE.programs
LINES = _CATALOGUE.lines
"""First line of each program in the memory of a device that has just been reset."""
PROGRAM_AT = {line: PROGRAMS[name] for name, line in LINES.items()}
"""The program that begins at a line."""
BOOT_IMAGE = b"".join(map(pack, PROGRAMS.values()))
"""The lines from 0 on that are there after a reset and cannot be overwritten."""
BOOT_DIGEST = int.from_bytes(sha256(BOOT_IMAGE + table_bytes()).digest()[:8], "little")
"""What the registers PROGRAM_DIGEST_LO and _HI say of them and of the tables."""

__all__ = ["BOOT_DIGEST", "BOOT_IMAGE", "FAMILIES", "LINES", "PROGRAMS", "PROGRAM_AT"]
