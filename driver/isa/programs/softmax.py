# SPDX-License-Identifier: Apache-2.0
"""Exponentials below a row's maximum: what softmax and attention are made of. src1 ≤ src2.

Those ending in 16 are shorter, and good to 2^-13.6: for 16-bit results.
"""

from __future__ import annotations

from collections.abc import Callable

from driver.isa.assembler import Assembler, Family, Value
from driver.isa.micro import Reduce
from driver.isa.programs.functions import exp_negative, exp_negative_16

FAMILY = Family("softmax")
Exponential = Callable[[Assembler, Value], Value]


def _declare(suffix: str, exponential: Exponential) -> None:
    def difference(p: Assembler) -> Value:
        return exponential(p, p.sub(p.src1, p.src2))

    def scaled(p: Assembler) -> Value:
        return exponential(p, p.mul(p.sub(p.src1, p.src2), p.imm(0)))

    text = "e^(src1 − src2)"
    FAMILY.add(f"exp_difference{suffix}", difference, text, sources=2)
    FAMILY.add(
        f"exp_difference_sum{suffix}", difference, f"Σ {text}", sources=2, reduce=Reduce.FADD
    )
    text = "e^(scale·(src1 − src2)), scale above 0"
    FAMILY.add(f"exp_scale_difference{suffix}", scaled, text, sources=2, imms=("scale",))


_declare("", exp_negative)
_declare("_16", exp_negative_16)
