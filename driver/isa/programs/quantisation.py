# SPDX-License-Identifier: Apache-2.0
"""Between floats and int8, int32 sums and int8.

Scales are src2 and zero points src3, so strides of 0 make them per tensor, others per channel.
"""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp

FAMILY = Family("quantisation")
program = FAMILY.program

_INT8_MIN, _INT8_MAX = -128, 127
_FAR = 1 << 30
"""Where numbers saturate before a zero point within ±2²⁹ is added, lest the sum wrap."""


def _clamp(p: Assembler, value: Value, low: int, high: int) -> Value:
    return p.op(MicroOp.IMIN, p.op(MicroOp.IMAX, value, p.word(low)), p.word(high))


def _to_int8(p: Assembler, number: Value, zero_point: Value) -> Value:
    """To the nearest integer, ties to even, plus the zero point, saturated."""
    near = _clamp(p, p.op(MicroOp.F2I, number), -_FAR, _FAR)
    return _clamp(p, p.op(MicroOp.IADD, near, zero_point), _INT8_MIN, _INT8_MAX)


@program("src1 ÷ scale src2, rounded, plus zero point src3, as int8", sources=3)
def quantize(p: Assembler) -> Value:
    return _to_int8(p, p.div(p.src1, p.src2), p.src3)


@program("(int32 src1)·scale src2, rounded, plus zero point src3, as int8", sources=3)
def requantize(p: Assembler) -> Value:
    return _to_int8(p, p.mul(p.op(MicroOp.I2F, p.src1), p.src2), p.src3)


@program("(src1 − zero point src3)·scale src2", sources=3)
def dequantize(p: Assembler) -> Value:
    return p.mul(p.op(MicroOp.I2F, p.op(MicroOp.ISUB, p.src1, p.src3)), p.src2)
