# SPDX-License-Identifier: Apache-2.0
"""Single passes of optimizers: what each tensor of a parameter's state becomes.

`sign` is −1 where the objective is maximised, else 1; `decay` is what the parameter adds to its
gradient. A product with `sign` is exact. Without decay the parameter is not looked at, since 0·∞ is
a NaN.
"""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import Reduce

FAMILY = Family("optimizers")
program = FAMILY.program


def _gradient(p: Assembler, grad: Value, parameter: Value, decay: Value, sign: Value) -> Value:
    """decay·parameter + sign·grad"""
    return p.fma(parameter, decay, p.mul(grad, sign))


# ---------------------------------------------------------------------- sums of a few terms
@program("src1 + weight·(sign·src2 − src1)", sources=2, imms=("weight", "sign"))
def lerp(p: Assembler) -> Value:
    return p.fma(p.fma(p.src2, p.imm(1), p.neg(p.src1)), p.imm(0), p.src1)


@program("src1 + value·(src2 ÷ src3)", sources=3, imms=("value",))
def addcdiv(p: Assembler) -> Value:
    return p.fma(p.div(p.src2, p.src3), p.imm(0), p.src1)


@program("value·src1·src2 + src3", sources=3, imms=("value",))
def scale_mul_add(p: Assembler) -> Value:
    return p.fma(p.mul(p.src1, p.imm(0)), p.src2, p.src3)


# ---------------------------------------------------------------------- stochastic gradient descent
@program("src1 + rate·(sign·src2 + decay·src1)", sources=2, imms=("rate", "decay", "sign"))
def decayed_sgd(p: Assembler) -> Value:
    return p.fma(_gradient(p, p.src2, p.src1, p.imm(1), p.imm(2)), p.imm(0), p.src1)


@program(
    "momentum·src1 + weight·(sign·src2 + decay·src3)",
    sources=3,
    imms=("momentum", "weight", "decay", "sign"),
)
def decayed_momentum(p: Assembler) -> Value:
    grad = _gradient(p, p.src2, p.src3, p.imm(2), p.imm(3))
    return p.fma(grad, p.imm(1), p.mul(p.src1, p.imm(0)))


@program(
    "src1 + rate·(sign·src2 + decay·src1 + momentum·src3)",
    sources=3,
    imms=("rate", "momentum", "decay", "sign"),
)
def decayed_nesterov(p: Assembler) -> Value:
    grad = _gradient(p, p.src2, p.src1, p.imm(2), p.imm(3))
    return p.fma(p.fma(p.src3, p.imm(1), grad), p.imm(0), p.src1)


@program("src1 + rate·(sign·src2 + momentum·src3)", sources=3, imms=("rate", "momentum", "sign"))
def nesterov(p: Assembler) -> Value:
    step = p.fma(p.src3, p.imm(1), p.mul(p.src2, p.imm(2)))
    return p.fma(step, p.imm(0), p.src1)


# ---------------------------------------------------------------------- Adam
@program(
    "src1 + weight·(sign·src2 + decay·src3 − src1)",
    sources=3,
    imms=("weight", "decay", "sign"),
)
def decayed_lerp(p: Assembler) -> Value:
    grad = _gradient(p, p.src2, p.src3, p.imm(1), p.imm(2))
    return p.fma(p.sub(grad, p.src1), p.imm(0), p.src1)


def _mean_square(p: Assembler, grad: Value) -> Value:
    return p.fma(p.mul(grad, p.imm(1)), grad, p.mul(p.src1, p.imm(0)))


@program("beta·src1 + weight·src2²", sources=2, imms=("beta", "weight"))
def mean_square(p: Assembler) -> Value:
    return _mean_square(p, p.src2)


@program(
    "beta·src1 + weight·(sign·src2 + decay·src3)²",
    sources=3,
    imms=("beta", "weight", "decay", "sign"),
)
def decayed_mean_square(p: Assembler) -> Value:
    return _mean_square(p, _gradient(p, p.src2, p.src3, p.imm(2), p.imm(3)))


@program("(√src1·src2 + eps) ÷ src3", sources=3, imms=("eps",))
def root_over(p: Assembler) -> Value:
    return p.div(p.fma(p.sqrt(p.src1), p.src2, p.imm(0)), p.src3)


@program("keep·src1 − src2 ÷ src3", sources=3, imms=("keep",))
def keep_sub_quotient(p: Assembler) -> Value:
    return p.sub(p.mul(p.src1, p.imm(0)), p.div(p.src2, p.src3))


# ---------------------------------------------------------------------- clipping, gradient scaling
@program("Σ |src1|", sources=1, reduce=Reduce.FADD)
def sum_magnitudes(p: Assembler) -> Value:
    return p.abs(p.src1)


@program(
    "the largest |src1| by its bits, int32: from 2³¹ − 2²³ on no number",
    sources=1,
    reduce=Reduce.IMAX,
)
def largest_bits(p: Assembler) -> Value:
    return p.abs(p.src1)
