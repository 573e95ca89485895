# SPDX-License-Identifier: Apache-2.0
"""What optimizers do with gradients: interpolation, and quotients added up."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import is_float
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import fp32
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_HALF = 0.5
"""From this weight on, of either sign, torch starts from the other end."""


def _floats(b: ProgramBuilder, *views: TensorView) -> None:
    for view in views:
        if not is_float(view):
            raise b.unsupported("dtype", view.dtype.name, "a floating-point type")


@TABLE.op("lerp.Scalar", "lerp_.Scalar")
def lerp(
    b: ProgramBuilder, out: TensorView, self: TensorView, end: TensorView, weight: Scalar
) -> None:
    """self + weight·(end − self)"""
    _floats(b, self, end)
    apart, weight = b.temp(DType.FP32, out.sizes), fp32(float(weight))
    b.vector("add", (end, self), apart, -1.0)
    if abs(weight) < _HALF:
        b.vector("add", (self, apart), out, weight)
    else:
        b.vector("add", (end, apart), out, weight - 1.0)


@TABLE.op("lerp.Tensor", "lerp_.Tensor")
def lerp_by_tensor(
    b: ProgramBuilder, out: TensorView, self: TensorView, end: TensorView, weight: TensorView
) -> None:
    """self + weight·(end − self), element by element"""
    _floats(b, self, end, weight)
    apart, near, far = (b.temp(DType.FP32, out.sizes) for _ in range(3))
    small = b.temp(DType.UINT8, weight.sizes)
    size = b.temp(DType.FP32, weight.sizes)
    b.vector("abs", (weight,), size)
    b.vector("less_imm", (size,), small, _HALF)
    b.vector("add", (self, end), apart, -1.0)
    b.vector("sub_mul", (weight, apart, self), near)
    b.vector("linear_part", (apart, weight, end), far)
    b.vector("where", (small, near, far), out)


@TABLE.op("addcdiv", "addcdiv_")
def addcdiv(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    tensor1: TensorView,
    tensor2: TensorView,
    *,
    value: Scalar = 1,
) -> None:
    """self + value·(tensor1 ÷ tensor2)"""
    _floats(b, self, tensor1, tensor2)
    quotient = b.temp(DType.FP32, out.sizes)
    b.vector("div", (tensor1, tensor2), quotient)
    b.vector("add", (self, quotient), out, float(value))
