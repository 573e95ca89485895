# SPDX-License-Identifier: Apache-2.0
"""One element of a loss: src1 the prediction, src2 the target."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import MicroOp

FAMILY = Family("losses")
program = FAMILY.program


def _distance(p: Assembler) -> Value:
    return p.abs(p.sub(p.src1, p.src2))


@program("(src1 − src2)²", sources=2)
def square_difference(p: Assembler) -> Value:
    difference = p.sub(p.src1, p.src2)
    return p.mul(difference, difference)


@program("d²·½ ÷ beta where d = |src1 − src2| < beta, else d − ½·beta", sources=2, imms=("beta",))
def smooth_l1(p: Assembler) -> Value:
    d, beta = _distance(p), p.imm(0)
    near = p.div(p.mul(p.mul(d, d), p.f(0.5)), beta)
    return p.select(p.op(MicroOp.FLT, d, beta), near, p.fma(beta, p.f(-0.5), d))


@program(
    "d²·½ where d = |src1 − src2| ≤ delta, else delta·(d − ½·delta)", sources=2, imms=("delta",)
)
def huber(p: Assembler) -> Value:
    d, delta = _distance(p), p.imm(0)
    near = p.mul(p.mul(d, d), p.f(0.5))
    return p.select(p.op(MicroOp.FLE, d, delta), near, p.mul(delta, p.fma(delta, p.f(-0.5), d)))


@program("(src3 − 1)·max(src2, −100) − src3·max(src1, −100)", sources=3)
def cross_entropy_of_logs(p: Assembler) -> Value:
    one, other = (p.op(MicroOp.FMAX, p.src(at), p.f(-100.0)) for at in (0, 1))
    rest = p.mul(p.sub(p.src3, p.f(1.0)), other)
    return p.fma(p.neg(p.src3), one, rest)


@program("(1 − src2)·src1 + src3", sources=3)
def linear_part(p: Assembler) -> Value:
    return p.fma(p.sub(p.f(1.0), p.src2), p.src1, p.src3)


@program("src3·((src1 − 1)·src2 + 1)", sources=3)
def weighted_part(p: Assembler) -> Value:
    return p.mul(p.src3, p.fma(p.sub(p.src1, p.f(1.0)), p.src2, p.f(1.0)))
