# SPDX-License-Identifier: Apache-2.0
"""Ops that arrange elements by value: positions from driver.lower.order, elements by GATHER."""

from __future__ import annotations

from collections.abc import Callable

from driver.config import HwConfig
from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, is_float
from driver.lower.extremes import index_of
from driver.lower.index import in_line
from driver.lower.long_views import is_long
from driver.lower.order import KeyOrder, by_bits, by_ranks, first, has_blocks, is_short, order
from driver.lower.reduce import reduce
from driver.lower.registry import Condition, LoweringTable, RuleFunction
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Pair = tuple[TensorView | None, TensorView | None]
"""Where values and positions go."""


def _lines(view: TensorView, dim: int) -> TensorView:
    """The view with `dim` innermost; a tensor without dimensions gets one."""
    return view.with_last([dim % view.rank]) if view.rank else view.inserted(0)


def _deliver(b: ProgramBuilder, outs: Pair, rows: TensorView, places: TensorView) -> None:
    """Values at these positions, int32 [rows, count], and the positions; views with the rows' other
    dimensions before the innermost one."""
    values, indices = outs
    found = places.split(0, rows.sizes[:-1]) if rows.rank > 1 else places.selected(0, 0)
    if values is not None:
        b.gather(rows, found, values, rows.rank - 1)
    if indices is not None:
        convert(b, found, indices)


def _oriented(outs: Pair, dim: int) -> Pair:
    values, indices = (None if out is None else _lines(out, dim) for out in outs)
    return values, indices


def best(b: ProgramBuilder, outs: Pair, rows: TensorView, *, count: int, largest: bool) -> None:
    """The largest or smallest elements of the innermost dimension, in order."""
    _deliver(b, outs, rows, first(b, rows, count, descending=largest))


def _sort(by: KeyOrder) -> RuleFunction:
    """Values in order, and their indices."""

    def rule(
        b: ProgramBuilder, outs: Pair, self: TensorView, dim: int = -1, descending: bool = False
    ) -> None:
        rows = _lines(self, dim)
        _deliver(b, _oriented(outs, dim), rows, order(b, rows, descending=descending, by=by))

    return rule


def _stable(sort: RuleFunction) -> RuleFunction:
    """As `_sort`: every sort here is stable."""

    def rule(
        b: ProgramBuilder,
        outs: Pair,
        self: TensorView,
        *,
        stable: bool | None = None,
        dim: int = -1,
        descending: bool = False,
    ) -> None:
        sort(b, outs, self, dim, descending)

    return rule


def _argsort(sort: RuleFunction) -> RuleFunction:
    """Indices of the values in order."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        dim: int = -1,
        descending: bool = False,
    ) -> None:
        sort(b, (None, out), self, dim, descending)

    return rule


def _stable_argsort(sort: RuleFunction) -> RuleFunction:
    """As `_argsort`."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        *,
        stable: bool,
        dim: int = -1,
        descending: bool = False,
    ) -> None:
        sort(b, (None, out), self, dim, descending)

    return rule


def _rows_are_short(hw: HwConfig, out: object, *, self: TensorView, dim: int, **_: object) -> bool:
    return is_short(_lines(self, dim))


def _declare_sorts(rule: str, by: KeyOrder, when: Condition | None) -> None:
    """One way to sort, in all of its overloads."""
    sort = _sort(by)
    TABLE.op("sort", outputs=2, rule=rule, when=when)(sort)
    TABLE.op("sort.stable", outputs=2, rule=rule, when=when)(_stable(sort))
    TABLE.op("argsort", rule=rule, when=when)(_argsort(sort))
    TABLE.op("argsort.stable", rule=rule, when=when)(_stable_argsort(sort))


_declare_sorts("ranks", by_ranks, _rows_are_short)
_declare_sorts("bits", by_bits, None)


def _topk(places: Callable[[ProgramBuilder, TensorView, int, bool], TensorView]) -> RuleFunction:
    """The k largest or smallest in order, and their indices."""

    def rule(
        b: ProgramBuilder,
        outs: Pair,
        self: TensorView,
        k: int,
        dim: int = -1,
        largest: bool = True,
        sorted: bool = True,
    ) -> None:
        rows = _lines(self, dim)
        _deliver(b, _oriented(outs, dim), rows, places(b, rows, k, largest))

    return rule


def _of_blocks(b: ProgramBuilder, rows: TensorView, count: int, largest: bool) -> TensorView:
    return first(b, rows, count, descending=largest)


def _of_all(b: ProgramBuilder, rows: TensorView, count: int, largest: bool) -> TensorView:
    return order(b, rows, descending=largest).sliced(1, 0, count)


def _rows_have_blocks(
    hw: HwConfig, out: object, *, self: TensorView, k: int, dim: int, **_: object
) -> bool:
    rows = _lines(self, dim)
    return k > 0 and not is_long(rows) and has_blocks(rows, k)


TABLE.op("topk", outputs=2, rule="blocks", when=_rows_have_blocks)(_topk(_of_blocks))
TABLE.op("topk", outputs=2, rule="whole_rows")(_topk(_of_all))


@TABLE.op("kthvalue", outputs=2)
def kthvalue(
    b: ProgramBuilder,
    outs: Pair,
    self: TensorView,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
) -> None:
    """The k-th smallest, and its index"""
    _deliver(b, _kept(outs, self, dim, keepdim), *_kth(b, self, k, dim))


def _kept(outs: Pair, x: TensorView, dim: int, keepdim: bool) -> Pair:
    """Results of a dimension's reduction, with that dimension innermost and of size 1."""
    if keepdim and x.rank:
        return _oriented(outs, dim)
    values, indices = (None if out is None else out.inserted(out.rank) for out in outs)
    return values, indices


def _kth(b: ProgramBuilder, x: TensorView, k: int, dim: int) -> tuple[TensorView, TensorView]:
    """(rows, position of the k-th smallest in each)."""
    rows = _lines(x, dim)
    return rows, first(b, rows, k, descending=False).sliced(1, k - 1, 1)


# ---------------------------------------------------------------------- median
def _median(b: ProgramBuilder, outs: Pair, x: TensorView, dim: int) -> None:
    """The lower median of rows [.., length], or their first NaN; results have size 1 in `dim`."""
    if not x.count:
        raise b.unsupported("sizes", list(x.sizes), "at least one element to choose from")
    rows, places = _kth(b, x, (_lines(x, dim).sizes[-1] + 1) // 2, dim)
    if not is_float(x):
        _deliver(b, outs, rows, places)
        return
    shape = (*rows.sizes[:-1], 1)
    most, where = b.temp(DType.FP32, shape), b.temp(DType.INT32, shape)
    reduce(b, "amax", rows, most, (rows.rank - 1,))
    index_of(b, rows, most, where, rows.rank - 1)
    most, where = (view.reshaped(places.sizes, (1, 1)) for view in (most, where))
    ordered, chosen = (b.temp(DType.INT32, places.sizes) for _ in range(2))
    b.vector("equal", (most, most), ordered)
    b.vector("where", (ordered, places, where), chosen)
    _deliver(b, outs, rows, chosen)


@TABLE.op("median")
def median(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """The lower median of all elements; a NaN if there is one"""
    line = in_line(b, self)
    _median(b, (out.inserted(0), None), line, 0)


@TABLE.op("median.dim", outputs=2)
def median_of_rows(
    b: ProgramBuilder, outs: Pair, self: TensorView, dim: int, keepdim: bool = False
) -> None:
    """The lower median along a dimension, or its first NaN, and the index"""
    _median(b, _kept(outs, self, dim, keepdim), self, dim)
