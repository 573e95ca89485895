# SPDX-License-Identifier: Apache-2.0
"""The vector engine's instructions: what a lane does to 32-bit words, as docs/numerics.md defines.

A program is a straight line of instructions on registers; it runs once per element. It writes one
to three results, which are stored; a single one can be reduced over the innermost dimension.
driver.isa.image has a program's form in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

REGISTERS = 16
IMMEDIATES = 6
PLAIN_IMMEDIATES = 4
"""Immediates of a VECTOR packet without operand list; the others are 0 there."""
MAX_SOURCES = 4
PLAIN_SOURCES = 3
"""Sources that a VECTOR packet without operand list can name."""
MAX_RESULTS = 3
MAX_INSTRUCTIONS = 255
MAX_CONSTANTS = 64
REDUCTION_LANES = 16
"""Logical lanes of a reduction, whatever the number of physical ones."""


class MicroOp(IntEnum):
    """What an instruction computes of its operands a, b, c."""

    MOV = 0
    FMA = 1
    DIV = 2
    SQRT = 3
    FMAX = 4
    FMIN = 5
    FLT = 6
    FLE = 7
    FEQ = 8
    SEL = 9
    AND = 10
    OR = 11
    XOR = 12
    IADD = 13
    ISUB = 14
    IMUL = 15
    IMAX = 16
    IMIN = 17
    ILT = 18
    IEQ = 19
    SHL = 20
    SRL = 21
    SRA = 22
    I2F = 23
    F2I = 24
    F2I_TRUNC = 25
    ROUND_FP16 = 26
    ROUND_BF16 = 27
    SEGMENT = 28


@dataclass(frozen=True)
class MicroInfo:
    """How many operands an instruction has, and what it gives."""

    operands: int
    text: str


MICRO_INFO: dict[MicroOp, MicroInfo] = {
    MicroOp.MOV: MicroInfo(1, "a, bits untouched"),
    MicroOp.FMA: MicroInfo(3, "fma(a, b, c)"),
    MicroOp.DIV: MicroInfo(2, "a ÷ b, correctly rounded"),
    MicroOp.SQRT: MicroInfo(1, "√a, correctly rounded"),
    MicroOp.FMAX: MicroInfo(2, "the larger; NaN if either is; +0 above −0"),
    MicroOp.FMIN: MicroInfo(2, "the smaller; NaN if either is; −0 below +0"),
    MicroOp.FLT: MicroInfo(2, "1 if a < b as fp32, else 0; 0 with a NaN"),
    MicroOp.FLE: MicroInfo(2, "1 if a ≤ b as fp32, else 0; 0 with a NaN"),
    MicroOp.FEQ: MicroInfo(2, "1 if a = b as fp32, else 0; 0 with a NaN; −0 = +0"),
    MicroOp.SEL: MicroInfo(3, "b if any bit of a is set, else c; bits untouched"),
    MicroOp.AND: MicroInfo(2, "a and b, bitwise"),
    MicroOp.OR: MicroInfo(2, "a or b, bitwise"),
    MicroOp.XOR: MicroInfo(2, "a exclusive-or b, bitwise"),
    MicroOp.IADD: MicroInfo(2, "a + b modulo 2³²"),
    MicroOp.ISUB: MicroInfo(2, "a − b modulo 2³²"),
    MicroOp.IMUL: MicroInfo(2, "a · b modulo 2³²"),
    MicroOp.IMAX: MicroInfo(2, "the larger, as int32"),
    MicroOp.IMIN: MicroInfo(2, "the smaller, as int32"),
    MicroOp.ILT: MicroInfo(2, "1 if a < b as int32, else 0"),
    MicroOp.IEQ: MicroInfo(2, "1 if all bits are equal, else 0"),
    MicroOp.SHL: MicroInfo(2, "a · 2^(b mod 32) modulo 2³²"),
    MicroOp.SRL: MicroInfo(2, "a shifted right by b mod 32, zeros from above"),
    MicroOp.SRA: MicroInfo(2, "a shifted right by b mod 32, copies of the sign from above"),
    MicroOp.I2F: MicroInfo(1, "int32 to fp32, rounded to nearest even"),
    MicroOp.F2I: MicroInfo(1, "fp32 to int32, rounded to nearest even; saturates, NaN gives 0"),
    MicroOp.F2I_TRUNC: MicroInfo(1, "fp32 to int32, rounded towards 0; saturates, NaN gives 0"),
    MicroOp.ROUND_FP16: MicroInfo(1, "a rounded to fp16, as fp32: stored and loaded in one step"),
    MicroOp.ROUND_BF16: MicroInfo(1, "a rounded to bf16, as fp32: stored and loaded in one step"),
    MicroOp.SEGMENT: MicroInfo(
        1, "abs(a), at most the table's end; the segment of abs(a) in table b"
    ),
}


class Reduce(IntEnum):
    """How the elements of one innermost row become one."""

    NONE = 0
    FADD = 1
    FMAX = 2
    FMIN = 3
    IADD = 4
    IMAX = 5
    IMIN = 6


REDUCE_IDENTITY: dict[Reduce, int] = {
    Reduce.NONE: 0,
    Reduce.FADD: 0x8000_0000,  # −0: x + −0 is x, whatever its sign
    Reduce.FMAX: 0xFF80_0000,
    Reduce.FMIN: 0x7F80_0000,
    Reduce.IADD: 0,
    Reduce.IMAX: 0x8000_0000,
    Reduce.IMIN: 0x7FFF_FFFF,
}
"""Where every lane of a reduction starts; a bit pattern."""


# Operand codes: registers first, then what the command brings, then the program's constants.
OPERAND_SRC = 16
OPERAND_INDEX = 20
"""The element's position in the innermost dimension, an int32 from 0."""
OPERAND_IMM = 24
OPERAND_TABLE = 32
"""Column 0 of the element's row of the table that the last SEGMENT named; then the next columns."""
OPERAND_CONST = 64
DST_RESULT = 16
"""Destination codes: 0 to 15 a register, 16 the first result, 17 and 18 the next."""

OP_BITS = 6
DST_BITS = 5
OPERAND_BITS = 7


@dataclass(frozen=True)
class Instruction:
    """One line of a program: codes of destination and operands; unused operands are 0.

    b of SEGMENT is no operand but the number of a table.
    """

    op: MicroOp
    dst: int
    a: int
    b: int = 0
    c: int = 0

    @property
    def operands(self) -> tuple[int, ...]:
        """Codes of the operands that the instruction has."""
        return (self.a, self.b, self.c)[: MICRO_INFO[self.op].operands]


@dataclass(frozen=True)
class VectorProgram:
    """A program, assembled. Where it lies in program memory is not part of it."""

    name: str
    family: str
    text: str
    sources: int
    """How many sources it reads: the first so many."""
    imms: tuple[str, ...]
    """What imm0, imm1, … mean."""
    reduce: Reduce
    code: tuple[Instruction, ...]
    constants: tuple[int, ...] = ()
    """32-bit words; operand code OPERAND_CONST + i is constant i."""
    results: int = 1

    @property
    def positional(self) -> bool:
        """Whether the innermost dimension means something: it is reduced or its index is read."""
        return self.reduce is not Reduce.NONE or any(
            OPERAND_INDEX in line.operands for line in self.code
        )
