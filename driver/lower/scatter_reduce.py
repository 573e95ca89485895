# SPDX-License-Identifier: Apache-2.0
"""scatter_reduce: sums and means by SCATTER, extremes over all pairs of place and element."""

from __future__ import annotations

from math import prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.compare import where
from driver.lower.convert import as_type, constant, convert, is_float
from driver.lower.index import as_indices, cropped, ranked, take
from driver.lower.long_views import is_long
from driver.lower.positions import positions
from driver.lower.registry import LoweringTable
from driver.lower.scatter import scatter
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_MOST_PAIRS = 1 << 26


@TABLE.op("scatter_reduce.two", "scatter_reduce_.two")
def scatter_reduce(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    dim: int,
    index: TensorView,
    src: TensorView,
    reduce: str,
    *,
    include_self: bool = True,
) -> None:
    """self with the sum, mean, largest or smallest of the elements sent to each place"""
    self, index, src, out = map(ranked, (self, index, src, out))
    at = dim % self.rank
    b.copy(self, out)
    if not index.count:
        return
    for other in range(self.rank):
        src = src.sliced(other, 0, index.sizes[other])
    places, target = as_indices(b, index), cropped(out, index, at)
    if reduce in ("amax", "amin"):
        _extreme(b, target, places, src, at, reduce, include_self)
    elif reduce == "sum" or (reduce == "mean" and is_float(out)):
        _sum(b, target, places, src, at, include_self, mean=reduce == "mean")
    else:
        raise b.unsupported("reduce", reduce, "sum, amax, amin, or mean of floats")


def _sum(
    b: ProgramBuilder,
    target: TensorView,
    places: TensorView,
    src: TensorView,
    dim: int,
    include_self: bool,
    *,
    mean: bool,
) -> None:
    """Into the target, which holds self; floats are summed in fp32 and rounded once."""
    sums = target
    if is_float(target):
        sums = b.temp(DType.FP32, target.sizes)
        b.vector("move", (target,), sums)
        src = as_type(b, src, DType.FP32)
    if not include_self:
        _put(b, sums, places, dim, 0)
    scatter(b, src, places, sums, dim, accumulate=True)
    if mean:
        counts = b.temp(DType.FP32, target.sizes)
        b.fill(counts, 1.0)
        if not include_self:
            _put(b, counts, places, dim, 0)
        _put(b, counts, places, dim, 1, accumulate=True)
        b.vector("div", (sums, counts), target)
    elif sums is not target:
        b.vector("move", (sums,), target)


def _put(
    b: ProgramBuilder,
    target: TensorView,
    places: TensorView,
    dim: int,
    number: int,
    *,
    accumulate: bool = False,
) -> None:
    """One number at all the places."""
    source = b.expanded(constant(b, number, target.dtype), places.sizes)
    scatter(b, source, places, target, dim, accumulate=accumulate)


def _extreme(
    b: ProgramBuilder,
    target: TensorView,
    places: TensorView,
    src: TensorView,
    dim: int,
    name: str,
    include_self: bool,
) -> None:
    if is_long(target):
        raise b.unsupported("dtype", target.dtype.name, "an element of at most 32 bits")
    rows, elements = (view.with_last([dim]) for view in (target, src))
    shape = (*rows.sizes, elements.sizes[-1])
    if prod(shape) > _MOST_PAIRS:
        raise b.unsupported("pairs", shape, f"at most {_MOST_PAIRS} pairs of place and element")
    own = positions(b, rows.sizes[-1])
    # Comparing would pass over an index that is no place; reading by it fails.
    index = b.temp(DType.INT32, elements.sizes)
    take(b, index, own, places.with_last([dim]), 0)
    kind = "" if is_float(target) else "int_"
    found = b.temp(DType.FP32 if is_float(target) else DType.INT32, rows.sizes)
    before = elements.rank - 1
    pairs = (elements.inserted(before), index.inserted(before), own.inserted(1))
    b.vector(f"{kind}scatter_{name}", pairs, found.inserted(rows.rank))
    if include_self:
        best = "maximum" if name == "amax" else "minimum"
        b.vector(f"{kind}{best}", (found, rows), rows)
        return
    hit = b.temp(DType.UINT8, target.sizes)
    b.fill(hit, 0)
    _put(b, hit, places, dim, 1)
    fresh = b.temp(target.dtype, rows.sizes)
    convert(b, found, fresh)
    where(b, rows, hit.with_last([dim]), fresh, rows)
