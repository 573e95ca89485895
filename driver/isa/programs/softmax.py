# SPDX-License-Identifier: Apache-2.0
"""Exponentials below a row's maximum: what softmax and attention are made of. src1 ≤ src2.

Those ending in 16 are shorter, and good to 2^-13.6: for 16-bit results.
"""

from __future__ import annotations

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import Reduce
from driver.isa.programs.functions import exp_negative, exp_negative_16

FAMILY = Family("softmax")


def _difference(p: Assembler) -> Value:
    return p.sub(p.src1, p.src2)


def _scaled(p: Assembler) -> Value:
    return p.mul(_difference(p), p.imm(0))


for _suffix, _exp in (("", exp_negative), ("_16", exp_negative_16)):
    FAMILY.add(
        f"exp_difference{_suffix}",
        lambda p, exp=_exp: exp(p, _difference(p)),
        "e^(src1 − src2)",
        sources=2,
    )
    FAMILY.add(
        f"exp_difference_sum{_suffix}",
        lambda p, exp=_exp: exp(p, _difference(p)),
        "Σ e^(src1 − src2)",
        sources=2,
        reduce=Reduce.FADD,
    )
    FAMILY.add(
        f"exp_scale_difference{_suffix}",
        lambda p, exp=_exp: exp(p, _scaled(p)),
        "e^(scale·(src1 − src2)), scale above 0",
        sources=2,
        imms=("scale",),
    )
