# SPDX-License-Identifier: Apache-2.0
"""Vector programs in integers only: one element, or one reduced row, as docs/numerics.md says.

The third opinion for VECTOR, as golden.softfloat's chain is for MATMUL. Slow and plain; knows
nothing of packets, shapes or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from driver.isa import DTYPE_BYTES, DType
from driver.isa.micro import (
    DST_RESULT,
    IMMEDIATES,
    OPERAND_CONST,
    OPERAND_IMM,
    OPERAND_INDEX,
    OPERAND_SRC,
    OPERAND_TABLE,
    REDUCE_IDENTITY,
    REDUCTION_LANES,
    MicroOp,
    Reduce,
    VectorProgram,
)
from driver.isa.tables import TABLES
from golden import softfloat
from golden.softfloat import FORMATS

_WORD = 0xFFFF_FFFF
_ONE = 0x3F80_0000
_INFINITY = 0x7F80_0000


def signed(word: int) -> int:
    """32 bits as an int32."""
    return word - (1 << 32) if word >> 31 else word


def load(dtype: DType, bits: int) -> int:
    """An element's bits as the 32-bit word that a program sees."""
    if dtype in FORMATS:
        return bits if dtype is DType.FP32 else softfloat.widen(dtype, bits)
    if dtype is DType.INT8 and bits >> 7:
        return bits | 0xFFFF_FF00
    return bits & _WORD


def store(dtype: DType, word: int) -> int:
    """A 32-bit result as the element's bits."""
    if dtype in FORMATS:
        return word if dtype is DType.FP32 else softfloat.narrow(dtype, word)
    return signed(word) & ((1 << 8 * DTYPE_BYTES[dtype]) - 1)


def segment(word: int, number: int) -> tuple[int, list[int]]:
    """What SEGMENT gives of a word in the table of this number: its result, the row's columns."""
    table = TABLES[number]
    sign, magnitude = word >> 31, word & 0x7FFF_FFFF
    above = max(magnitude - table.first, 0) >> table.shift
    index = min(above, len(table.rows) - 1)
    end = table.first + len(table.rows) * (1 << table.shift) - 1
    columns = [
        entry ^ (sign << 31 if column in table.odd else 0)
        for column, entry in enumerate(table.rows[index])
    ]
    return _cut(magnitude, end), columns


def _cut(magnitude: int, end: int) -> int:
    return end if end < magnitude <= _INFINITY else magnitude


def _ordering(*accepted: int) -> Callable[[int, int], int]:
    return lambda a, b: int(softfloat.compare(a, b) in accepted)


MICRO: dict[MicroOp, Callable[..., int]] = {
    MicroOp.MOV: lambda a: a,
    MicroOp.FMA: softfloat.fma,
    MicroOp.DIV: softfloat.div,
    MicroOp.SQRT: softfloat.sqrt,
    MicroOp.FMAX: softfloat.maximum,
    MicroOp.FMIN: softfloat.minimum,
    MicroOp.FLT: _ordering(-1),
    MicroOp.FLE: _ordering(-1, 0),
    MicroOp.FEQ: _ordering(0),
    MicroOp.SEL: lambda a, b, c: b if a else c,
    MicroOp.AND: lambda a, b: a & b,
    MicroOp.OR: lambda a, b: a | b,
    MicroOp.XOR: lambda a, b: a ^ b,
    MicroOp.IADD: lambda a, b: (a + b) & _WORD,
    MicroOp.ISUB: lambda a, b: (a - b) & _WORD,
    MicroOp.IMUL: lambda a, b: (a * b) & _WORD,
    MicroOp.IMAX: lambda a, b: max(a, b, key=signed),
    MicroOp.IMIN: lambda a, b: min(a, b, key=signed),
    MicroOp.ILT: lambda a, b: int(signed(a) < signed(b)),
    MicroOp.IEQ: lambda a, b: int(a == b),
    MicroOp.SHL: lambda a, b: (a << b % 32) & _WORD,
    MicroOp.SRL: lambda a, b: a >> b % 32,
    MicroOp.SRA: lambda a, b: (signed(a) >> b % 32) & _WORD,
    MicroOp.I2F: lambda a: softfloat.from_int(signed(a)),
    MicroOp.F2I: lambda a: softfloat.to_int32(a, truncate=False),
    MicroOp.F2I_TRUNC: lambda a: softfloat.to_int32(a, truncate=True),
    MicroOp.ROUND_FP16: lambda a: load(DType.FP16, store(DType.FP16, a)),
    MicroOp.SEGMENT: lambda a, limit: _cut(a & _WORD >> 1, limit),
    MicroOp.ROUND_BF16: lambda a: load(DType.BF16, store(DType.BF16, a)),
}
"""Each instruction on 32-bit words. Of SEGMENT the result only, b the last number of the table."""

_COMBINE: dict[Reduce, Callable[[int, int], int]] = {
    Reduce.FADD: lambda lane, element: softfloat.fma(lane, _ONE, element),
    Reduce.FMAX: MICRO[MicroOp.FMAX],
    Reduce.FMIN: MICRO[MicroOp.FMIN],
    Reduce.IADD: MICRO[MicroOp.IADD],
    Reduce.IMAX: MICRO[MicroOp.IMAX],
    Reduce.IMIN: MICRO[MicroOp.IMIN],
}


def run(
    program: VectorProgram, sources: Sequence[int], imms: Sequence[int], index: int = 0
) -> tuple[int, ...]:
    """The program's results for one element: words in, words out. Immediates not given are 0."""
    values: dict[int, int] = {OPERAND_INDEX: index}
    values |= {OPERAND_SRC + at: word for at, word in enumerate(sources)}
    values |= {OPERAND_IMM + at: 0 for at in range(IMMEDIATES)}
    values |= {OPERAND_IMM + at: word for at, word in enumerate(imms)}
    values |= {OPERAND_CONST + at: word for at, word in enumerate(program.constants)}
    results: dict[int, int] = {}
    for line in program.code:
        written = values if line.dst < DST_RESULT else results
        if line.op is MicroOp.SEGMENT:
            written[line.dst], columns = segment(values[line.a], line.b)
            values |= {OPERAND_TABLE + at: word for at, word in enumerate(columns)}
            continue
        written[line.dst] = MICRO[line.op](*(values[code] for code in line.operands))
    return tuple(results[DST_RESULT + at] for at in range(program.results))


def reduce(kind: Reduce, elements: Sequence[int]) -> int:
    """A row of words to one: the lanes, then the tree."""
    combine = _COMBINE[kind]
    lanes = [REDUCE_IDENTITY[kind]] * REDUCTION_LANES
    for index, element in enumerate(elements):
        lanes[index % REDUCTION_LANES] = combine(lanes[index % REDUCTION_LANES], element)
    apart = REDUCTION_LANES // 2
    while apart:
        lanes = [combine(lanes[i], lanes[i + apart]) for i in range(apart)]
        apart //= 2
    return lanes[0]
