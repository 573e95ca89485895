# SPDX-License-Identifier: Apache-2.0
"""Sorting short rows: each element's rank is counted, then elements go to their ranks.

Counting compares all pairs, so it suits rows of up to `LONGEST` elements. Equal elements keep their
order; NaN counts as the largest, as in torch.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower.convert import convert, is_float
from driver.lower.program import ProgramBuilder
from driver.lower.registry import Table
from driver.lower.views import TensorView

TABLE = Table()
LONGEST = 4096


def _ranks(b: ProgramBuilder, rows: TensorView, places: TensorView, descending: bool) -> TensorView:
    """Where each element of a row, the innermost dimension, goes; int32 of the rows' sizes."""
    keys, ranks = b.temp(DType.INT32, rows.sizes), b.temp(DType.INT32, rows.sizes)
    mask = -1 if descending else 0
    b.vector("sort_key" if is_float(rows) else "bits_xor_imm", (rows,), keys, mask)
    count = rows.sizes[-1]
    others = keys.inserted(rows.rank - 1, count)
    pairs = others.sizes
    own = keys.inserted(rows.rank, count)
    place = b.expanded(places.inserted(1, count), pairs)
    b.vector("rank", (others, own, place), ranks.inserted(rows.rank))
    return ranks


def _sorted(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, TensorView | None],
    x: TensorView,
    dim: int,
    descending: bool,
) -> None:
    """The first elements in order, as many as the results hold, and where they were."""
    if not x.rank:
        _single(b, outs, x)
        return
    rows = x.with_last([dim % x.rank])
    count = rows.sizes[-1]
    if count > LONGEST:
        raise b.unsupported("row", count, f"at most {LONGEST} elements")
    places = b.temp(DType.INT64, (count,))
    b.vector("int_range", (), places, 0, 1)
    ranks = _ranks(b, rows, places, descending)
    for out, source in zip(outs, (rows, b.expanded(places, rows.sizes)), strict=True):
        if out is None:
            continue
        target = out.with_last([dim % x.rank])
        whole = target if target.sizes == rows.sizes else b.temp(source.dtype, rows.sizes)
        b.scatter(source, ranks, whole, rows.rank - 1)
        if whole is not target:
            b.copy(whole.sliced(-1, 0, target.sizes[-1]), target)


def _single(
    b: ProgramBuilder, outs: tuple[TensorView | None, TensorView | None], x: TensorView
) -> None:
    values, indices = outs
    if values is not None:
        convert(b, x, values)
    if indices is not None:
        b.fill(indices, 0)


@TABLE.op("sort", outputs=2)
def sort(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, TensorView | None],
    self: TensorView,
    dim: int = -1,
    descending: bool = False,
) -> None:
    """Values in order, and their indices"""
    _sorted(b, outs, self, dim, descending)


@TABLE.op("sort.stable", outputs=2)
def sort_stable(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, TensorView | None],
    self: TensorView,
    *,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> None:
    """The same: every sort here is stable"""
    _sorted(b, outs, self, dim, descending)


@TABLE.op("argsort")
def argsort(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    dim: int = -1,
    descending: bool = False,
) -> None:
    """Indices of the values in order"""
    _sorted(b, (None, out), self, dim, descending)


@TABLE.op("topk", outputs=2)
def topk(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, TensorView | None],
    self: TensorView,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> None:
    """The k largest or smallest in order, and their indices"""
    _sorted(b, outs, self, dim, largest)
