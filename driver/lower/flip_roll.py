# SPDX-License-Identifier: Apache-2.0
"""The same elements in another order: reversed and rolled dimensions."""

from __future__ import annotations

from itertools import product

from driver.lower.builder import ProgramBuilder
from driver.lower.positions import along, positions
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@TABLE.op("flip")
def flip(b: ProgramBuilder, out: TensorView, self: TensorView, dims: tuple[int, ...]) -> None:
    """Each of the dimensions backwards: a gather for each"""
    turned = [dim % self.rank for dim in dims if self.rank and self.sizes[dim % self.rank] > 1]
    if not turned:
        b.copy(self, out)
        return
    x = self
    for number, dim in enumerate(turned):
        target = out if number == len(turned) - 1 else b.temp(out.dtype, out.sizes)
        line = positions(b, x.sizes[dim], x.sizes[dim] - 1, -1)
        b.gather(x, b.expanded(along(line, x.rank, dim), x.sizes), target, dim)
        x = target


@TABLE.op("roll")
def roll(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    shifts: tuple[int, ...],
    dims: tuple[int, ...] = (),
) -> None:
    """Elements moved along the dimensions, those beyond the end to the start"""
    if not self.rank or not dims:
        shape = (self.count,)
        source, target = b.temp(self.dtype, self.sizes), b.temp(out.dtype, self.sizes)
        b.copy(self, source)
        _rolled(b, source.reshaped(shape, (1,)), target.reshaped(shape, (1,)), {0: sum(shifts)})
        b.copy(target, out)
        return
    moved: dict[int, int] = {}
    for dim, shift in zip(dims, shifts, strict=True):
        moved[dim % self.rank] = moved.get(dim % self.rank, 0) + shift
    _rolled(b, self, out, moved)


def _rolled(b: ProgramBuilder, x: TensorView, out: TensorView, moved: dict[int, int]) -> None:
    """Two pieces per dimension: (start in x, start in out, elements)."""
    pieces = []
    for dim, shift in moved.items():
        size = x.sizes[dim]
        at = shift % size
        pieces.append([(dim, *p) for p in ((0, at, size - at), (size - at, 0, at)) if p[2]])
    for choice in product(*pieces):
        source, target = x, out
        for dim, start, end, count in choice:
            source, target = source.sliced(dim, start, count), target.sliced(dim, end, count)
        b.copy(source, target)
