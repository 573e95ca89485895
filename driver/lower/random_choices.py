# SPDX-License-Identifier: Apache-2.0
"""Chances, dropout and draws of categories, from the op's stream (docs/numerics.md)."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_float, constant, is_float
from driver.lower.extremes import index_of
from driver.lower.philox import words_like
from driver.lower.reduce import reduce
from driver.lower.registry import LoweringTable
from driver.lower.sort import best
from driver.lower.words import word
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _bernoulli(b: ProgramBuilder, out: TensorView, chance: TensorView) -> None:
    """1 with the chance of each element, else 0."""
    direct = not is_float(out)
    b.vector(
        "random_bernoulli",
        (words_like(b, out), as_float(b, chance)),
        out,
        1 if direct else word(1.0),
    )


@TABLE.op("bernoulli_.float", "bernoulli.p")
def bernoulli_p(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    p: float = 0.5,
    *,
    generator: None = None,
) -> None:
    """1 with chance p, else 0"""
    _bernoulli(b, out, constant(b, p, DType.FP32))


@TABLE.op("bernoulli_.Tensor", "bernoulli.Tensor")
def bernoulli_tensor(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    p: TensorView,
    *,
    generator: None = None,
) -> None:
    """1 with the chance that p gives for each element, else 0"""
    _bernoulli(b, out, p)


@TABLE.op("bernoulli")
def bernoulli(
    b: ProgramBuilder, out: TensorView, self: TensorView, *, generator: None = None
) -> None:
    """1 with the chance that self gives for each element, else 0"""
    _bernoulli(b, out, self)


@TABLE.op("native_dropout", outputs=2)
def native_dropout(
    b: ProgramBuilder,
    outs: tuple[TensorView, TensorView],
    input: TensorView,
    p: float,
    train: bool | None,
) -> None:
    """Elements kept with chance 1 − p, and which; those kept are divided by 1 − p"""
    out, mask = outs
    if train is False:
        b.copy(input, out)
        b.fill(mask, 1)
        return
    _bernoulli(b, mask, constant(b, 1 - p, DType.FP32))
    b.vector("dropout", (input, mask), out, 0.0 if p == 1 else 1 / (1 - p))


@TABLE.op("multinomial")
def multinomial(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: None = None,
) -> None:
    """Categories drawn by their weights: the largest of weight ÷ exponential(1)"""
    rows = self if self.rank == 2 else self.inserted(0)
    target = out if out.rank == 2 else out.inserted(0)
    draws = num_samples if replacement else 1
    sizes = (rows.sizes[0], draws, rows.sizes[1])
    noise = b.temp(DType.FP32, sizes)
    b.vector("random_exponential", (words_like(b, noise),), noise, 1.0)
    race = b.temp(DType.FP32, sizes)
    b.vector("div", (b.expanded(rows.inserted(1), sizes), noise), race)
    if draws == 1 and num_samples > 1:
        best(b, (None, target), race.selected(1, 0), count=num_samples, largest=True)
        return
    top = b.temp(DType.FP32, (*sizes[:2], 1))
    reduce(b, "amax", race, top, (2,))
    index_of(b, race, top, target.inserted(2), 2)
