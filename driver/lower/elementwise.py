# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and limits: what is one vector pass, or two.

Floats are computed in fp32 and rounded once to the result's type; integers modulo 2³², int64 modulo
2⁶⁴ (long.py). A Python number enters as fp32, or as an integer. Functions are in functions.py,
comparisons in compare.py.
"""

from __future__ import annotations

import math

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import (
    as_compared,
    as_float,
    as_integer,
    common_float,
    constant,
    convert,
    is_float,
    promoted,
    require_floats,
    rounded_to,
    word_type,
)
from driver.lower.long_views import is_long
from driver.lower.registry import LoweringTable, Scalar
from driver.lower.words import INT32_MAX, INT32_MIN, wrapped
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Operand = TensorView | Scalar


# ---------------------------------------------------------------------- sums, products, quotients
@TABLE.op("add.Tensor", "add_.Tensor", "add.Scalar", "add_.Scalar")
def add(
    b: ProgramBuilder, out: TensorView, self: Operand, other: Operand, alpha: Scalar = 1
) -> None:
    """self + alpha·other"""
    if isinstance(self, TensorView) and isinstance(other, TensorView):
        _add_tensors(b, out, self, other, alpha)
    elif isinstance(self, TensorView):
        assert not isinstance(other, TensorView)
        _affine(b, out, self, 1, _times(out, alpha, other))
    else:
        other = other if isinstance(other, TensorView) else constant(b, other, DType.FP32)
        _affine(b, out, other, alpha, self)


def _times(out: TensorView, alpha: Scalar, other: Scalar) -> Scalar:
    """alpha·other; in floats where the sign of a zero matters."""
    return float(alpha) * float(other) if is_float(out) else alpha * other


def _add_tensors(
    b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView, alpha: Scalar
) -> None:
    if is_float(out):
        b.vector("add", promoted(b, self, other), out, float(alpha))
    elif out.boolean:
        b.vector("logical_or", (self, other) if alpha else (self, self), out)
    elif is_long(out):
        long.add_scaled(b, out, self, other, as_integer(b, alpha))
    else:
        b.vector("int_add", (self, other), out, as_integer(b, alpha))


def _affine(
    b: ProgramBuilder, out: TensorView, x: TensorView, scale: Scalar, offset: Scalar
) -> None:
    if is_float(out):
        b.vector("affine", (as_float(b, x),), out, float(scale), float(offset))
    elif out.boolean:
        b.vector("logical_or", (x, constant(b, offset, DType.UINT8, boolean=True)), out)
    elif is_long(out):
        long.affine(b, out, x, as_integer(b, scale), as_integer(b, offset))
    else:
        numbers = (wrapped(as_integer(b, number), DType.INT32) for number in (scale, offset))
        b.vector("int_affine", (x,), out, *numbers)


@TABLE.op("sub.Tensor", "sub_.Tensor", "sub.Scalar", "sub_.Scalar")
def sub(
    b: ProgramBuilder, out: TensorView, self: Operand, other: Operand, alpha: Scalar = 1
) -> None:
    """self − alpha·other"""
    add(b, out, self, other, alpha=-float(alpha) if is_float(out) else -alpha)


@TABLE.op("rsub.Tensor", "rsub.Scalar")
def rsub(
    b: ProgramBuilder, out: TensorView, self: TensorView, other: Operand, alpha: Scalar = 1
) -> None:
    """other − alpha·self"""
    sub(b, out, other, self, alpha)


def factors(
    b: ProgramBuilder, self: TensorView, other: TensorView
) -> tuple[TensorView, TensorView]:
    """Operands of a product or quotient of floats. Like a number, a right one of one element stays
    fp32 beside 16 bits, as torch has it."""
    dtype = common_float(self, other)
    right = DType.FP32 if other.count == 1 else dtype
    return rounded_to(b, self, dtype), rounded_to(b, other, right)


@TABLE.op("mul.Tensor", "mul_.Tensor", "mul.Scalar", "mul_.Scalar")
def mul(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """self·other"""
    if not isinstance(self, TensorView):
        self, other = other, self
    assert isinstance(self, TensorView)
    if isinstance(other, TensorView):
        if is_float(out):
            b.vector("mul", factors(b, self, other), out)
        elif is_long(out):
            long.multiply(b, out, self, other)
        else:
            b.vector("int_mul", (self, other), out)
    elif is_float(out):
        b.vector("affine", (as_float(b, self),), out, float(other), -0.0)
    elif is_long(out):
        long.multiply(b, out, self, long.number(b, as_integer(b, other)))
    else:
        b.vector("int_affine", (self,), out, wrapped(as_integer(b, other), DType.INT32), 0)


@TABLE.op("div.Tensor", "div_.Tensor", "div.Scalar", "div_.Scalar")
def div(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """self ÷ other, correctly rounded"""
    if not isinstance(self, TensorView):
        assert isinstance(other, TensorView)
        b.vector("imm_div", (as_float(b, other),), out, float(self))
    elif isinstance(other, TensorView):
        b.vector("div", factors(b, self, other), out)
    else:
        divide_by(b, as_float(b, self), out, other)


def is_power_of_two(value: Scalar) -> bool:
    """Whether multiplying by 1 ÷ value gives the bits of dividing by value."""
    mantissa, exponent = math.frexp(value) if math.isfinite(value) else (0.0, 0)
    return abs(mantissa) == 0.5 and -126 <= exponent <= 126


def divide_by(b: ProgramBuilder, x: TensorView, out: TensorView, divisor: Scalar) -> None:
    """x ÷ divisor; where the divisor is a power of two as the product, which has the same bits."""
    if is_power_of_two(divisor):
        b.vector("affine", (x,), out, 1.0 / divisor, -0.0)
    else:
        b.vector("div_imm", (x,), out, float(divisor))


@TABLE.op("addcmul")
def addcmul(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    tensor1: TensorView,
    tensor2: TensorView,
    *,
    value: Scalar = 1,
) -> None:
    """self + value·tensor1·tensor2"""
    require_floats(b, out)
    same = tensor1 == tensor2
    self, tensor1, tensor2 = promoted(b, self, tensor1, tensor2)
    if same:  # read once
        b.vector("mean_square", (self, tensor1), out, 1.0, float(value))
    elif value == 1:
        b.vector("mul_add", (tensor1, tensor2, self), out)
    else:
        b.vector("scale_mul_add", (tensor1, tensor2, self), out, float(value))


# ---------------------------------------------------------------------- limits
@TABLE.op("maximum", "max.other")
def maximum(b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView) -> None:
    """The larger; NaN if either is"""
    _pick(b, "maximum", out, self, other)


@TABLE.op("minimum", "min.other")
def minimum(b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView) -> None:
    """The smaller; NaN if either is"""
    _pick(b, "minimum", out, self, other)


def _pick(
    b: ProgramBuilder, name: str, out: TensorView, self: TensorView, other: TensorView
) -> None:
    if is_float(out):
        b.vector(name, (as_float(b, self), as_float(b, other)), out)
    elif is_long(out):
        long.pick(b, _PICKS[name], out, self, other)
    else:
        b.vector(f"int_{name}", as_compared(b, self, other), out)


_PICKS = {"maximum": "gt", "minimum": "lt"}
"""The relation in which self is what is picked."""


@TABLE.op("clamp", "clamp_")
def clamp(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    min: Scalar | None = None,
    max: Scalar | None = None,
) -> None:
    """min(max(self, low), high)"""
    if is_float(out):
        low = -math.inf if min is None else float(min)
        high = math.inf if max is None else float(max)
        b.vector("clamp", (as_float(b, self),), out, low, high)
        return
    if is_long(out):
        _clamp_long(b, out, self, min, max)
        return
    low = INT32_MIN if min is None else wrapped(as_integer(b, min), self.dtype)
    high = INT32_MAX if max is None else wrapped(as_integer(b, max), self.dtype)
    b.vector("int_clamp", (self,), out, low, high)


def _clamp_long(
    b: ProgramBuilder, out: TensorView, x: TensorView, low: Scalar | None, high: Scalar | None
) -> None:
    value = x
    for relation, bound in (("gt", low), ("lt", high)):
        if bound is not None:
            long.pick(b, relation, out, value, as_integer(b, bound))
            value = out
    if value is x:
        convert(b, x, out)


@TABLE.op("hardtanh", "hardtanh_")
def hardtanh(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    min_val: Scalar = -1,
    max_val: Scalar = 1,
) -> None:
    """The same by another name"""
    clamp(b, out, self, min_val, max_val)


@TABLE.op("clamp_min", "clamp_min_")
def clamp_min(b: ProgramBuilder, out: TensorView, self: TensorView, min: Scalar) -> None:
    """max(self, min)"""
    clamp(b, out, self, min)


@TABLE.op("clamp_max", "clamp_max_")
def clamp_max(b: ProgramBuilder, out: TensorView, self: TensorView, max: Scalar) -> None:
    """min(self, max)"""
    clamp(b, out, self, None, max)


@TABLE.op("clamp.Tensor")
def clamp_tensors(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    min: TensorView | None = None,
    max: TensorView | None = None,
) -> None:
    """min(max(self, low), high), elementwise"""
    value = self
    for name, limit in (("maximum", min), ("minimum", max)):
        if limit is not None:
            bound = limit if is_float(out) else as_compared(b, self, limit)[1]
            last = name == "minimum" or max is None
            target = out if last else b.temp(word_type(out), out.sizes)
            _pick(b, name, target, value, bound)
            value = target
    if value is self:
        convert(b, self, out)
