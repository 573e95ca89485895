# SPDX-License-Identifier: Apache-2.0
"""Whether two whole tensors are equal: one truth value, which torch returns as a Python bool."""

from __future__ import annotations

from driver.isa import DType
from driver.lower import compare, extremes
from driver.lower.builder import ProgramBuilder
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@TABLE.op("equal")
def equal(b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView) -> None:
    """1 where the sizes and all elements are equal; a NaN equals nothing"""
    if self.sizes != other.sizes:
        b.fill(out, 0)
        return
    same = b.temp(DType.UINT8, self.sizes)
    compare.equal_elements(b, same, self, other)
    extremes.every(b, out, same)
