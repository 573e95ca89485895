# SPDX-License-Identifier: Apache-2.0
"""Running sums of small whole numbers by the matrix engine: rows times a triangle of ones.

Sums below 2^24 are exact in fp32, whatever their order. Long rows are cut into blocks, whose totals
are summed the same way and added to what follows.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.contraction import contract
from driver.runtime.views import TensorView

MAX_SUM = 1 << 24
_BLOCK = 64
"""Rows up to this long are one product. Longer ones would mostly read their triangle."""


class PrefixSums:
    """Running sums within one op; the triangles are made once."""

    def __init__(self, b: ProgramBuilder) -> None:
        self._b = b
        self._triangles: dict[int, TensorView] = {}

    def inclusive(self, rows: TensorView) -> TensorView:
        """out[r, i] = Σ rows[r, 0 … i]; rows are a dense fp32 [rows, length] of whole numbers.

        UnsupportedOp for rows of MAX_SUM elements and more.
        """
        b, (count, length) = self._b, rows.sizes
        if length >= MAX_SUM:
            raise b.unsupported("row", length, f"fewer than {MAX_SUM} elements")
        if length <= _BLOCK:
            return self._product(rows)
        blocks = -(-length // _BLOCK)
        padded = b.temp(DType.FP32, (count, blocks * _BLOCK))
        b.fill(padded.sliced(1, length, blocks * _BLOCK - length), 0.0)
        b.copy(rows, padded.sliced(1, 0, length))
        lines = padded.reshaped((count * blocks, _BLOCK), (_BLOCK, 1))
        local = self._product(lines).split(0, (count, blocks))
        totals = b.temp(DType.FP32, (count, blocks))
        b.copy(local.selected(2, _BLOCK - 1), totals)
        before = self.inclusive(totals)
        b.vector(
            "add",
            (local.sliced(1, 1, blocks - 1), before.sliced(1, 0, blocks - 1).inserted(2)),
            local.sliced(1, 1, blocks - 1),
            1.0,
        )
        return local.reshaped((count, length), (blocks * _BLOCK, 1))

    def _product(self, rows: TensorView) -> TensorView:
        sums = self._b.temp(DType.FP32, rows.sizes)
        triangle = self._triangle(rows.sizes[1])
        contract(self._b, rows, triangle, sums)
        return sums

    def _triangle(self, size: int) -> TensorView:
        """[k, n]: 1 where k ≤ n, else 0."""
        if size not in self._triangles:
            b = self._b
            ones, made = b.temp(DType.FP32, ()), b.temp(DType.FP32, (size, size))
            line = b.temp(DType.INT32, (size, 1))
            b.fill(ones, 1.0)
            b.vector("int_range", (), line.reshaped((size,), (1,)), 0, 1)
            b.vector("triu", (ones, line), made)
            self._triangles[size] = made
        return self._triangles[size]
