# SPDX-License-Identifier: Apache-2.0
"""The vector programs of driver.isa as golden._cmodel takes them: bytes, no numbers of its own."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from driver.isa.micro import VectorProgram
from driver.isa.programs import CONSTANTS, PROGRAMS


def encode(programs: Sequence[VectorProgram], constants: Sequence[int]) -> bytes:
    """Three counts; instructions (op, dst, a, b, c); constants; programs (instructions, sources,
    reduction). Little endian, in the order of the programs' numbers.
    """
    code = [line for program in programs for line in program.code]
    parts = [struct.pack("<3I", len(code), len(constants), len(programs))]
    parts += [struct.pack("<5B", line.op, line.dst, line.a, line.b, line.c) for line in code]
    parts += [struct.pack("<I", word) for word in constants]
    parts += [struct.pack("<HBB", len(p.code), p.sources, p.reduce) for p in programs]
    return b"".join(parts)


TABLES = encode(list(PROGRAMS.values()), CONSTANTS)
"""All programs."""
