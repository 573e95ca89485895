# SPDX-License-Identifier: Apache-2.0
"""Distinct elements: the first of each run of equal ones, sorted or as they lie."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.compare import TABLE as RELATIONS
from driver.lower.convert import convert
from driver.lower.index import in_line
from driver.lower.masks import compacted, counted, numbered
from driver.lower.order import order
from driver.lower.positions import positions
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Results = tuple[TensorView, TensorView, TensorView]
"""Values, each element's place among them, how often each occurs. Empty: not asked for."""


def _firsts(b: ProgramBuilder, line: TensorView) -> TensorView:
    """1 where an element differs from the one before, and for the first; else 0."""
    made = b.temp(DType.UINT8, line.sizes)
    b.fill(made.sliced(0, 0, 1), 1)
    rest = line.count - 1
    if rest:
        pair = (line.sliced(0, 1, rest), line.sliced(0, 0, rest))
        RELATIONS.function("ne.Tensor")(b, made.sliced(0, 1, rest), *pair)
    return made


def _runs(b: ProgramBuilder, outs: Results, line: TensorView, came_from: TensorView | None) -> None:
    """The runs of a line; `came_from`: where each of its elements was before it was sorted."""
    values, inverse, counts = outs
    number = values.count
    firsts = _firsts(b, line)
    starts = numbered(b, firsts)
    b.copy(compacted(b, line, starts, number), values)
    places = positions(b, line.count)
    if inverse.count:
        _inverse(b, inverse, firsts, came_from or places)
    if counts.count:
        ends = b.temp(DType.INT32, (number + 1,))
        b.fill(ends.sliced(0, number, 1), line.count)
        b.copy(compacted(b, places, starts, number), ends.sliced(0, 0, number))
        pair = (ends.sliced(0, 1, number), ends.sliced(0, 0, number))
        b.vector("int_add", pair, counts, -1)


def _inverse(
    b: ProgramBuilder, inverse: TensorView, firsts: TensorView, came_from: TensorView
) -> None:
    """The number of each element's run, from 0, at the place the element came from."""
    runs, found = (b.temp(DType.INT32, firsts.sizes) for _ in range(2))
    b.vector("float_to_int", (counted(b, firsts),), runs)
    b.vector("int_affine", (runs,), runs, 1, -1)
    b.scatter(runs, came_from, found, 0)
    shape = found.split(0, inverse.sizes) if inverse.rank else found.reshaped((), ())
    convert(b, shape, inverse)


@TABLE.op("_unique2", outputs=3)
def unique(
    b: ProgramBuilder,
    outs: Results,
    self: TensorView,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> None:
    """The distinct elements in ascending order"""
    line = in_line(b, self)
    perm = order(b, line.inserted(0)).selected(0, 0)
    arranged = b.temp(line.dtype, line.sizes)
    b.gather(line, perm, arranged, 0)
    _runs(b, outs, arranged, perm)


@TABLE.op("unique_consecutive", outputs=3)
def unique_consecutive(
    b: ProgramBuilder,
    outs: Results,
    self: TensorView,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> None:
    """The first of each run of equal elements"""
    if dim is not None:
        raise b.unsupported("dim", dim, "none: all elements")
    _runs(b, outs, in_line(b, self), None)
