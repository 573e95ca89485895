# SPDX-License-Identifier: Apache-2.0
"""Maxima of windows that divide the image as evenly as they can.

Where they have one size they are those of driver.lower.pool. Else the windows are laid out side by
side, shorter ones with their last position repeated, and places are looked up in a constant table.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.constant_index import take_constant
from driver.lower.convert import convert
from driver.lower.index import in_line
from driver.lower.pool import PoolingAxis, places, pooled
from driver.lower.pool_mean import adaptive_bounds
from driver.lower.registry import LoweringTable, RuleFunction
from driver.runtime.views import TensorView, dense_strides

TABLE = LoweringTable()


def _positions(length: int, count: int) -> list[list[int]]:
    """The positions of every window, all windows of one size."""
    bounds = adaptive_bounds(length, count)
    size = max(stop - start for start, stop in bounds)
    return [[min(start + at, stop - 1) for at in range(size)] for start, stop in bounds]


def _adaptive(dims: int) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        outs: tuple[TensorView, TensorView | None],
        self: TensorView,
        output_size: tuple[int, ...],
    ) -> None:
        out, indices = outs
        lines = [
            _positions(length, count)
            for length, count in zip(self.sizes[-dims:], out.sizes[-dims:], strict=True)
        ]
        flat = [[at for window in line for at in window] for line in lines]
        x = self
        for number, line in enumerate(flat):
            x = take_constant(b, x, x.rank - dims + number, line)
        axes = [
            PoolingAxis(len(line), len(windows), len(windows[0]), len(windows[0]), 0)
            for line, windows in zip(flat, lines, strict=True)
        ]
        pooled(b, "amax", x, out, axes)
        if indices is not None:
            _found(b, x, out, indices, axes, _table(self.sizes[-dims:], flat))

    return rule


def _table(lengths: Sequence[int], lines: Sequence[Sequence[int]]) -> list[int]:
    """The place in the image of every element of the windows laid out."""
    steps = dense_strides(lengths)
    return [sum(at * s for at, s in zip(each, steps, strict=True)) for each in product(*lines)]


def _found(
    b: ProgramBuilder,
    x: TensorView,
    best: TensorView,
    indices: TensorView,
    axes: Sequence[PoolingAxis],
    table: Sequence[int],
) -> None:
    """indices = the place in the image of each maximum."""
    if list(table) == list(range(len(table))):
        places(b, x, best, indices, axes)
        return
    laid, wide = (b.temp(DType.INT32, indices.sizes) for _ in range(2))
    places(b, x, best, laid, axes)
    b.gather(b.table(DType.INT32, table), in_line(b, laid), in_line(b, wide), 0)
    convert(b, wide, indices)


for _dims in (2, 3):
    TABLE.op(f"adaptive_max_pool{_dims}d", outputs=2)(_adaptive(_dims))
