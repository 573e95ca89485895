# SPDX-License-Identifier: Apache-2.0
"""Activation functions. A program with the suffix of a 16-bit type is shorter and serves
results of that type."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp
from driver.isa.programs import _math as m

FAMILY = Family("activations")
program = FAMILY.program


@program("src1 if above 0, else +0; NaN stays", sources=1)
def relu(p: Assembler) -> Value:
    return p.op(MicroOp.FMAX, p.src1, p.word(0))


LOGISTIC_MIRROR = 122.0
"""122 − x finds the segment: ½ wide from x = 17 to −6, where it is 128, and 1 wide below."""
LOGISTIC_SCALE = 2.0**60
_LOGISTIC_LEAST = -110.0
"""The table is 0 from −109 on: x·e^x is less than half the least number. Its m is near, for x·t has
to be finite."""
_LOGISTIC_MOST = 17.5
"""1 ÷ (1 + e^−x) is 1 to half a unit in the last place from here on."""


def _logistic(p: Assembler, x: Value, low: Value | None = None) -> tuple[Value, Value, Value]:
    """2^60 ÷ (1 + e^−(x + low)) as (t + low)·v + c, for x from −120 to 17.5: (t, v, c).

    c is a column, so one instruction may have it. It has no error, and |t·v| is at most half of the
    sum. x = 0 is the upper end of a segment, so t·v is not below 0 there.
    """
    segment = p.segment(p.sub(p.f(LOGISTIC_MIRROR), x), "logistic")
    t = p.add(x, p.column(segment, 0))
    variable = t if low is None else p.add(t, low)
    v = p.op(MicroOp.MOV, p.column(segment, 7))
    for column in range(6, 1, -1):
        v = p.fma(v, variable, p.column(segment, column))
    return t, v, p.column(segment, 1)


@program("1 ÷ (1 + e^−src1)", sources=1)
def sigmoid(p: Assembler) -> Value:
    x = p.op(MicroOp.FMIN, p.op(MicroOp.FMAX, p.src1, p.f(_LOGISTIC_LEAST)), p.f(_LOGISTIC_MOST))
    t, v, constant = _logistic(p, x)
    return p.mul(p.fma(t, v, constant), p.f(1 / LOGISTIC_SCALE))


def gated(p: Assembler, x: Value, most: float, argument: Value, low: Value | None = None) -> Value:
    """x ÷ (1 + e^−(argument + low)), which is x from `most` on; x is below `most` in the argument.

    The product with x is formed before the logistic function is rounded. Its 2^60 would be too much
    for large x: what x has beyond `most` is added last, subtracted as +0 to keep the sign of −0.
    −∞·0 is a NaN, as in torch.
    """
    t, v, constant = _logistic(p, argument, low)
    within = p.op(MicroOp.FMIN, x, p.f(most))
    product = p.mul(within, t) if low is None else p.fma(within, t, p.mul(within, low))
    scaled = p.fma(within, constant, p.mul(product, v))
    return p.sub(p.mul(scaled, p.f(1 / LOGISTIC_SCALE)), p.sub(within, x))


@program("src1 ÷ (1 + e^−src1)", sources=1)
def silu(p: Assembler) -> Value:
    within = p.op(MicroOp.FMIN, p.src1, p.f(_LOGISTIC_MOST))
    x = p.op(MicroOp.FMAX, within, p.f(_LOGISTIC_LEAST))
    return gated(p, p.src1, _LOGISTIC_MOST, x)


SIGMOID_16_SCALE = 1.1851851940155029
SIGMOID_16_OFFSET = 244.5625
"""32/27 to fp32. x from −97.5 on gives 129 and more, where segments of width 1 begin."""
_SIGMOID_16_LEAST = -98.0


def sigmoid_16(p: Assembler, x: Value) -> Value:
    """1 ÷ (1 + e^−x) to 2^-12.4, or 2^-149 where that is more; 0 below −97.5, where x·e^x is below
    half the least bf16 number.
    """
    x = p.op(MicroOp.FMAX, x, p.f(_SIGMOID_16_LEAST))
    y = p.fma(x, p.f(SIGMOID_16_SCALE), p.f(SIGMOID_16_OFFSET))
    return m.from_table(p, y, "sigmoid_16")


@program("silu to 2^-12.4, for 16-bit results", sources=1)
def silu_16(p: Assembler) -> Value:
    return p.mul(sigmoid_16(p, p.src1), p.src1)
