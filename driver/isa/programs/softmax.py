# SPDX-License-Identifier: Apache-2.0
"""Exponentials of differences: what softmax, attention and their gradients are made of.

src1 is no larger than src2, their row's maximum, in all of them but exp_scaled_minus.
Programs whose name ends in 16 are shorter and serve 16-bit results: their error is 2^-13.6.
"""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import Reduce
from driver.isa.programs.functions import exp_negative, exp_negative_16, exp_of_sum

FAMILY = Family("softmax")
program = FAMILY.program
Exponential = Callable[[Assembler, Value], Value]


def _difference(exponential: Exponential) -> Callable[[Assembler], Value]:
    return lambda p: exponential(p, p.sub(p.src1, p.src2))


def _scaled(exponential: Exponential) -> Callable[[Assembler], Value]:
    return lambda p: exponential(p, p.mul(p.sub(p.src1, p.src2), p.imm(0)))


_POWER, _SCALED_POWER = "e^(src1 − src2)", "e^(scale·(src1 − src2)), scale above 0"
for _suffix, _exp in (("", exp_negative), ("_16", exp_negative_16)):
    FAMILY.add(f"exp_difference{_suffix}", _difference(_exp), _POWER, sources=2)
    FAMILY.add(
        f"exp_scale_difference{_suffix}", _scaled(_exp), _SCALED_POWER, sources=2, imms=("scale",)
    )
FAMILY.add(
    "exp_difference_sum",
    _difference(exp_negative),
    f"Σ {_POWER}",
    sources=2,
    reduce=Reduce.FADD,
)


@program("e^(scale·src1 − src2), the product rounded", sources=2, imms=("scale",))
def exp_scaled_minus(p: Assembler) -> Value:
    return exp_of_sum(p, p.sub(p.mul(p.src1, p.imm(0)), p.src2))
