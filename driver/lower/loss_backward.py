# SPDX-License-Identifier: Apache-2.0
"""Gradients of losses of classes: one number per target, at the place of its class."""

from __future__ import annotations

from collections.abc import Callable

from driver.lower.builder import ProgramBuilder
from driver.lower.convert import as_type, is_float, number
from driver.lower.loss import CLASS_DIM, Reduction, places_of, weights_of
from driver.lower.registry import LoweringTable, RuleFunction
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _likelihood(class_dim: Callable[[TensorView], int]) -> RuleFunction:
    """−weight[target]·grad at the class of each target, ÷ the sum of weights for a mean; 0
    elsewhere, and where the target is ignored."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        grad_output: TensorView,
        self: TensorView,
        target: TensorView,
        weight: TensorView | None,
        reduction: int,
        ignore_index: int,
        total_weight: TensorView,
    ) -> None:
        if not is_float(self):
            raise b.unsupported("dtype", self.dtype.name, "a floating-point type")
        dim = class_dim(self)
        place, kept = places_of(b, target, self.sizes[dim], ignore_index)
        values = weights_of(b, weight, place, kept)
        b.vector("mul", (values, b.expanded(grad_output, values.sizes)), values)
        b.vector("neg", (values,), values)
        if reduction == Reduction.MEAN:
            b.vector("div", (values, total_weight), values)
        b.vector("where", (kept, values, number(b, 0.0)), values)
        b.fill(out, 0)
        b.scatter(as_type(b, values, out.dtype).inserted(dim), place.inserted(dim), out, dim)

    return rule


for _name, _dim in CLASS_DIM.items():
    TABLE.op(f"{_name}_backward")(_likelihood(_dim))
