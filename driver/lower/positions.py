# SPDX-License-Identifier: Apache-2.0
"""Positions along a dimension: first, first + step, …, and a line of numbers as one dimension."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.runtime.views import TensorView


def positions(b: ProgramBuilder, count: int, first: int = 0, step: int = 1) -> TensorView:
    """first + step·i for i below count, in fresh memory: int32."""
    line = b.temp(DType.INT32, (count,))
    b.vector("int_range", (), line, first, step)
    return line


def along(line: TensorView, rank: int, dim: int) -> TensorView:
    """A line of numbers as the dimension `dim` of `rank` dimensions."""
    return line.reshaped(
        [line.count if at == dim else 1 for at in range(rank)],
        [line.strides[0] if at == dim else 0 for at in range(rank)],
    )
