# SPDX-License-Identifier: Apache-2.0
"""Losses: a pass or two per element in fp32, then the sum or the mean as `reduction` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import IntEnum

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_float, convert, number, require_floats
from driver.lower.elementwise import divide_by
from driver.lower.index import as_words
from driver.lower.reduce import reduce
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.runtime.views import TensorView, broadcast, dense_strides

TABLE = LoweringTable()
Optional = TensorView | None


class Reduction(IntEnum):
    """torch's numbers."""

    NONE = 0
    MEAN = 1
    SUM = 2


def _sizes(b: ProgramBuilder, *views: TensorView) -> tuple[int, ...]:
    sizes = broadcast(*(view.sizes for view in views))
    if sizes is None:
        raise b.unsupported("shapes", [view.sizes for view in views], "shapes that broadcast")
    return sizes


def _elements(
    b: ProgramBuilder, out: TensorView, reduction: int, sizes: tuple[int, ...]
) -> TensorView:
    """Where the loss of each element goes."""
    return out if reduction == Reduction.NONE else b.temp(DType.FP32, sizes)


def _total(b: ProgramBuilder, values: TensorView, out: TensorView) -> None:
    """out, of no dimension, = Σ values; 0 without any."""
    if not values.count:
        b.fill(out, 0)
        return
    line = values.reshaped((values.count,), (1,)) if values.is_dense else values
    dims = tuple(range(line.rank))
    ones = (1,) * line.rank
    reduce(b, "sum", line, out.reshaped(ones, dense_strides(ones)), dims)


def _reduced(b: ProgramBuilder, values: TensorView, out: TensorView, reduction: int) -> None:
    """The sum or the mean of the elements' losses, if that is asked for."""
    if reduction == Reduction.NONE:
        return
    if reduction == Reduction.SUM:
        _total(b, values, out)
    elif not values.count:
        b.fill(out, math.nan)
    else:
        total = b.temp(DType.FP32, ())
        _total(b, values, total)
        divide_by(b, total, out, values.count)


def _pairwise(
    b: ProgramBuilder,
    program: str,
    out: TensorView,
    x: TensorView,
    target: TensorView,
    reduction: int,
    *imms: float,
) -> None:
    """A program of prediction and target per element."""
    require_floats(b, x, target)
    values = _elements(b, out, reduction, _sizes(b, x, target))
    b.vector(program, (x, target), values, *imms)
    _reduced(b, values, out, reduction)


@TABLE.op("mse_loss")
def mse(
    b: ProgramBuilder, out: TensorView, self: TensorView, target: TensorView, reduction: int = 1
) -> None:
    """(self − target)²"""
    _pairwise(b, "square_difference", out, self, target, reduction)


@TABLE.op("smooth_l1_loss")
def smooth_l1(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    target: TensorView,
    reduction: int = 1,
    beta: Scalar = 1.0,
) -> None:
    """Square below beta, distance above"""
    _pairwise(b, "smooth_l1", out, self, target, reduction, float(beta))


@TABLE.op("huber_loss")
def huber(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    target: TensorView,
    reduction: int = 1,
    delta: Scalar = 1.0,
) -> None:
    """The same times delta"""
    _pairwise(b, "huber", out, self, target, reduction, float(delta))


@TABLE.op("soft_margin_loss")
def soft_margin(
    b: ProgramBuilder, out: TensorView, self: TensorView, target: TensorView, reduction: int = 1
) -> None:
    """log(1 + e^(−self·target))"""
    require_floats(b, self, target)
    sizes = _sizes(b, self, target)
    margin = b.temp(DType.FP32, sizes)
    b.vector("mul", (self, target), margin)
    b.vector("neg", (margin,), margin)
    values = _elements(b, out, reduction, sizes)
    b.vector("softplus", (margin,), values)
    _reduced(b, values, out, reduction)


# ---------------------------------------------------------------------- of probabilities
@TABLE.op("binary_cross_entropy")
def binary_cross_entropy(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    target: TensorView,
    weight: TensorView | None = None,
    reduction: int = 1,
) -> None:
    """−target·log self − (1 − target)·log(1 − self), logarithms at least −100; times weight"""
    require_floats(b, self, target)
    one, other = (b.temp(DType.FP32, self.sizes) for _ in range(2))
    b.vector("log", (self,), one)
    b.vector("neg", (self,), other)
    b.vector("log1p", (other,), other)
    _weighted(b, "cross_entropy_of_logs", (one, other, target), out, weight, reduction)


@TABLE.op("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    target: TensorView,
    weight: TensorView | None = None,
    pos_weight: TensorView | None = None,
    reduction: int = 1,
) -> None:
    """(1 − target)·self + ((pos_weight − 1)·target + 1)·log(1 + e^−self); times weight"""
    require_floats(b, self, target)
    sizes = _sizes(b, self, target)
    soft = b.temp(DType.FP32, sizes)
    b.vector("neg", (self,), soft)
    b.vector("softplus", (soft,), soft)
    if pos_weight is not None:
        b.vector("weighted_part", (pos_weight, target, soft), soft)
    _weighted(b, "linear_part", (self, target, soft), out, weight, reduction)


def _weighted(
    b: ProgramBuilder,
    program: str,
    sources: tuple[TensorView, TensorView, TensorView],
    out: TensorView,
    weight: Optional,
    reduction: int,
) -> None:
    """The program's elements, times a weight if there is one, reduced."""
    sizes = _sizes(b, *sources)
    values = _elements(b, out, reduction, sizes)
    if weight is None:
        b.vector(program, sources, values)
    else:
        plain = b.temp(DType.FP32, sizes)
        b.vector(program, sources, plain)
        b.vector("mul", (plain, weight), values)
    _reduced(b, values, out, reduction)


# ---------------------------------------------------------------------- of classes
def _likelihood(class_dim: Callable[[TensorView], int]) -> RuleFunction:
    """−weight[target]·self[target], 0 where the target is ignored; the mean by the weights."""

    def rule(
        b: ProgramBuilder,
        outs: tuple[TensorView, TensorView | None],
        self: TensorView,
        target: TensorView,
        weight: TensorView | None,
        reduction: int,
        ignore_index: int,
    ) -> None:
        dim = class_dim(self)
        place, kept = places_of(b, target, self.sizes[dim], ignore_index)
        chosen = _chosen(b, self, place, dim)
        weights = weights_of(b, weight, place, kept)
        values = b.temp(DType.FP32, target.sizes)
        b.vector("mul", (chosen, weights), values)
        b.vector("neg", (values,), values)
        b.vector("where", (kept, values, number(b, 0.0)), values)
        _finish(b, values, weights, outs, reduction)

    return rule


def places_of(
    b: ProgramBuilder, target: TensorView, classes: int, ignore_index: int
) -> tuple[TensorView, TensorView]:
    """The class of each target as int32, 0 where it is ignored; whether it is not.

    A target that is no class stays outside, and the gather that reads its element fails.
    """
    kept, place = b.temp(DType.UINT8, target.sizes), b.temp(DType.INT32, target.sizes)
    words = as_words(b, target)
    b.vector("int_not_equal_imm", (words,), kept, ignore_index)
    b.vector("int_clamp", (words,), place, -1, classes)
    zero = b.table(DType.INT32, (0,)).reshaped((), ())
    b.vector("where", (kept, place, zero), place)
    return place, kept


def _finish(
    b: ProgramBuilder,
    values: TensorView,
    weights: TensorView,
    outs: tuple[TensorView, TensorView | None],
    reduction: int,
) -> None:
    out, total = outs
    if reduction == Reduction.NONE and values.rank:  # a single target is summed whatever is asked
        convert(b, values, out)
        if total is not None:
            b.fill(total, 0)
        return
    norm, loss = b.temp(DType.FP32, ()), b.temp(DType.FP32, ())
    _total(b, weights, norm)
    _total(b, values, loss)
    if reduction == Reduction.MEAN:
        b.vector("div", (loss, norm), out)
    else:
        convert(b, loss, out)
    if total is not None:
        convert(b, norm, total)


def _chosen(b: ProgramBuilder, x: TensorView, place: TensorView, dim: int) -> TensorView:
    """x at the class of each target, in fp32."""
    index = place.inserted(dim)
    found = b.temp(x.dtype, index.sizes)
    b.gather(x, index, found, dim)
    return as_float_32(b, found).reshaped(place.sizes, dense_strides(place.sizes))


def as_float_32(b: ProgramBuilder, view: TensorView) -> TensorView:
    """A dense view, or its elements as fp32."""
    wide = as_float(b, view)
    if wide.dtype is DType.FP32:
        return wide
    fresh = b.temp(DType.FP32, view.sizes)
    convert(b, wide, fresh)
    return fresh


def weights_of(
    b: ProgramBuilder, weight: Optional, place: TensorView, kept: TensorView
) -> TensorView:
    """The weight of each target, 0 where it is ignored."""
    found = b.temp(DType.FP32, place.sizes)
    if weight is None:
        b.fill(found, 1.0)
    else:
        line = place.reshaped((place.count,), (1,))
        taken = b.temp(weight.dtype, line.sizes)
        b.gather(weight, line, taken, 0)
        convert(b, taken.reshaped(place.sizes, dense_strides(place.sizes)), found)
    b.vector("where", (kept, found, number(b, 0.0)), found)
    return found


CLASS_DIM: Mapping[str, Callable[[TensorView], int]] = {
    "nll_loss": lambda x: x.rank - 1,
    "nll_loss2d": lambda x: 1,
}
"""The dimension of the classes, by the loss."""

for _name, _dim in CLASS_DIM.items():
    TABLE.op(f"{_name}_forward", outputs=2)(_likelihood(_dim))
