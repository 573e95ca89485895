# SPDX-License-Identifier: Apache-2.0
"""Largest and smallest elements, over any dimensions, and where they are; any and all."""

from __future__ import annotations

from collections.abc import Sequence

from driver.lower import long_reduce
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_truth, is_float, word_type
from driver.lower.long_views import is_long
from driver.lower.reduce import over_dims, reduce, typed, with_kept_dims
from driver.lower.registry import LoweringTable, RuleFunction
from driver.lower.words import INT32_MAX
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _extreme(program: str) -> RuleFunction:
    return over_dims(lambda b, x, out, dims: _reduce_extreme(b, program, x, out, dims))


def _reduce_extreme(
    b: ProgramBuilder, program: str, x: TensorView, out: TensorView, dims: Sequence[int]
) -> None:
    """out = amax or amin of x, of its type or a wider one."""
    if out.count and not x.count:
        raise b.unsupported("sizes", list(x.sizes), "at least one element to choose from")
    if is_long(x):
        long_reduce.extreme(b, program, x, out, dims)
    else:
        reduce(b, typed(x, program), x, out, dims)


TABLE.op("amax", "max")(_extreme("amax"))
TABLE.op("amin", "min")(_extreme("amin"))


def _truth(program: str) -> RuleFunction:
    """any and all: the largest and the smallest truth value."""

    def compute(b: ProgramBuilder, x: TensorView, out: TensorView, dims: tuple[int, ...]) -> None:
        if x.count:
            reduce(b, program, as_truth(b, x), out, dims)
        else:
            b.fill(out, int(program == "int_amin"))

    return over_dims(compute)


TABLE.op("any", "any.dim", "any.dims")(_truth("int_amax"))
every = TABLE.op("all", "all.dim", "all.dims")(_truth("int_amin"))


def index_of(b: ProgramBuilder, x: TensorView, best: TensorView, out: TensorView, dim: int) -> None:
    """Where along `dim` x first equals `best`, its extreme, or is a NaN. Places are words."""
    if x.sizes[dim] > INT32_MAX:
        raise b.unsupported("sizes", x.sizes, "less than 2³¹ elements to find one among")
    if is_long(x):
        long_reduce.index_of(b, x, best, out, dim)
        return
    program = "first_equal" if is_float(x) else "int_first_equal"
    wide = b.expanded(best, x.sizes)
    b.vector(program, (x.with_last([dim]), wide.with_last([dim])), out.with_last([dim]))


def _index_of_extreme(program: str) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        dim: int | None = None,
        keepdim: bool = False,
    ) -> None:
        whole = dim is None
        flat = _flat(b, self) if whole else self
        target = out.reshaped((), ()) if whole else out
        x, wide, (at,) = with_kept_dims(flat, target, dim, keepdim and not whole)
        best = b.temp(word_type(x), wide.sizes)
        _reduce_extreme(b, program, x, best, (at,))
        index_of(b, x, best, wide, at)

    return rule


def _flat(b: ProgramBuilder, view: TensorView) -> TensorView:
    """All elements in row-major order as one dimension, copied if their strides need it."""
    flat = view.flattened()
    if flat is None:
        fresh = b.temp(view.dtype, view.sizes)
        b.copy(view, fresh)
        flat = fresh.flattened()
    assert flat is not None
    return flat


TABLE.op("argmax")(_index_of_extreme("amax"))
TABLE.op("argmin")(_index_of_extreme("amin"))


def _extreme_and_index(program: str) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        outs: tuple[TensorView, TensorView],
        self: TensorView,
        dim: int,
        keepdim: bool = False,
    ) -> None:
        values, indices = outs
        _, indices, _ = with_kept_dims(self, indices, dim, keepdim)
        x, values, (at,) = with_kept_dims(self, values, dim, keepdim)
        _reduce_extreme(b, program, x, values, (at,))
        index_of(b, x, values, indices, at)

    return rule


TABLE.op("max.dim", outputs=2)(_extreme_and_index("amax"))
TABLE.op("min.dim", outputs=2)(_extreme_and_index("amin"))
