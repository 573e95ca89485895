# SPDX-License-Identifier: Apache-2.0
"""Exponentials below a row's maximum: what softmax and attention are made of. src1 ≤ src2."""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import Reduce
from driver.isa.programs.functions import exp_negative

FAMILY = Family("softmax")
program = FAMILY.program


def _difference(p: Assembler) -> Value:
    return exp_negative(p, p.sub(p.src1, p.src2))


FAMILY.add("exp_difference", _difference, "e^(src1 − src2)", sources=2)
FAMILY.add("exp_difference_sum", _difference, "Σ e^(src1 − src2)", sources=2, reduce=Reduce.FADD)


@program("e^(scale·(src1 − src2)), scale above 0", sources=2, imms=("scale",))
def exp_scale_difference(p: Assembler) -> Value:
    return exp_negative(p, p.mul(p.sub(p.src1, p.src2), p.imm(0)))
