# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and functions of one element: what is one vector pass, or few.

Floats are computed in fp32 and rounded once to the result's type; integers modulo 2³². A Python
number enters as fp32 or int32. Comparisons and logic are in compare.py.
"""

from __future__ import annotations

import math

from driver.isa import DType
from driver.isa.programs import PROGRAMS
from driver.lower.convert import as_float, constant, convert, is_float
from driver.lower.program import ProgramBuilder
from driver.lower.registry import Rule, Scalar, Table
from driver.lower.views import TensorView
from driver.lower.words import FLOATS

TABLE = Table()
Operand = TensorView | Scalar
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


def whole(b: ProgramBuilder, value: Scalar) -> int:
    """A number that integer arithmetic can take. UnsupportedOp for a fraction."""
    if value != int(value):
        raise b.unsupported("scalar", value, "an integer for integer operands")
    return int(value)


# ---------------------------------------------------------------------- functions of one float
_FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "sigmoid"),
    *("erf", "silu", "sqrt", "rsqrt", "softplus"),
)
"""ATen functions of a float that are programs of the same name."""


def _function(name: str) -> Rule:
    def rule(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
        b.vector(name, (as_float(b, self),), out)

    return rule


for _name in _FUNCTIONS:
    if _name in PROGRAMS:
        TABLE.op(_name, f"{_name}_")(_function(_name))


@TABLE.op("reciprocal", "reciprocal_")
def reciprocal(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """1 ÷ self"""
    b.vector("imm_div", (as_float(b, self),), out, 1.0)


@TABLE.op("gelu", "gelu_")
def gelu(
    b: ProgramBuilder, out: TensorView, self: TensorView, *, approximate: str = "none"
) -> None:
    """x·Φ(x), or its approximation by tanh"""
    program = {"none": "gelu_erf", "tanh": "gelu_tanh"}.get(approximate)
    if program is None:
        raise b.unsupported("approximate", approximate, "none or tanh")
    b.vector(program, (self,), out)


@TABLE.op("relu", "relu_")
def relu(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """max(self, 0)"""
    if is_float(self):
        b.vector("relu", (self,), out)
    else:
        b.vector("int_clamp", (self,), out, 0, _INT_MAX)


@TABLE.op("neg", "neg_")
def neg(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """−self"""
    if is_float(self):
        b.vector("neg", (self,), out)
    else:
        b.vector("int_affine", (self,), out, -1, 0)


@TABLE.op("abs", "abs_")
def absolute(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """|self|"""
    b.vector("abs" if is_float(self) else "int_abs", (self,), out)


@TABLE.op("square")
def square(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """self²"""
    b.vector("mul" if is_float(out) else "int_mul", (self, self), out)


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
        b.vector("add", (as_float(b, self), as_float(b, other)), out, float(alpha))
    elif out.boolean:
        b.vector("logical_or", (self, other), out)
    else:
        b.vector("int_add", (self, other), out, whole(b, alpha))


def _affine(
    b: ProgramBuilder, out: TensorView, x: TensorView, scale: Scalar, offset: Scalar
) -> None:
    if is_float(out):
        b.vector("affine", (as_float(b, x),), out, float(scale), float(offset))
    elif out.boolean:
        b.vector("logical_or", (x, constant(b, offset, DType.UINT8)), out)
    else:
        b.vector("int_affine", (x,), out, whole(b, scale), whole(b, offset))


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


@TABLE.op("mul.Tensor", "mul_.Tensor", "mul.Scalar", "mul_.Scalar")
def mul(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """self·other"""
    if not isinstance(self, TensorView):
        self, other = other, self
    assert isinstance(self, TensorView)
    if isinstance(other, TensorView):
        if is_float(out):
            b.vector("mul", (as_float(b, self), as_float(b, other)), out)
        else:
            b.vector("int_mul", (self, other), out)
    elif is_float(out):
        b.vector("affine", (as_float(b, self),), out, float(other), -0.0)
    else:
        b.vector("int_affine", (self,), out, whole(b, other), 0)


@TABLE.op("div.Tensor", "div_.Tensor", "div.Scalar", "div_.Scalar")
def div(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """self ÷ other, correctly rounded"""
    if not isinstance(self, TensorView):
        assert isinstance(other, TensorView)
        b.vector("imm_div", (as_float(b, other),), out, float(self))
    elif isinstance(other, TensorView):
        b.vector("div", (as_float(b, self), as_float(b, other)), out)
    else:
        divide_by(b, as_float(b, self), out, other)


def divide_by(b: ProgramBuilder, x: TensorView, out: TensorView, divisor: Scalar) -> None:
    """x ÷ divisor; where the divisor is a power of two as the product, which has the same bits."""
    mantissa, exponent = math.frexp(divisor) if math.isfinite(divisor) else (0.0, 0)
    if abs(mantissa) == 0.5 and -126 <= exponent <= 126:
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
    if not is_float(out):
        raise b.unsupported("dtype", out.dtype.name, "a floating-point type")
    if value != 1:
        scaled = b.temp(DType.FP32, tensor1.sizes)
        b.vector("affine", (tensor1,), scaled, float(value), -0.0)
        tensor1 = scaled
    b.vector("mul_add", (tensor1, tensor2, self), out)


# ---------------------------------------------------------------------- powers
@TABLE.op("pow.Tensor_Scalar", "pow_.Scalar")
def power(b: ProgramBuilder, out: TensorView, self: TensorView, exponent: Scalar) -> None:
    """self ^ exponent; small powers as torch computes them, by products"""
    if not is_float(out):
        _int_power(b, out, self, whole(b, exponent))
        return
    x = as_float(b, self)
    if exponent == 0:
        b.fill(out, 1.0)
    elif exponent == 1:
        b.vector("move", (x,), out)
    elif exponent == 2:
        b.vector("mul", (x, x), out)
    elif exponent == 3:
        b.vector("mul_mul", (x, x, x), out)
    elif exponent in _ROOTS:
        b.vector(_ROOTS[exponent], (x,), out)
    elif exponent == -1:
        b.vector("imm_div", (x,), out, 1.0)
    else:
        b.vector("pow", (x, constant(b, float(exponent), DType.FP32)), out)


_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}


def _int_power(b: ProgramBuilder, out: TensorView, x: TensorView, exponent: int) -> None:
    if not 0 <= exponent <= 8:
        raise b.unsupported("exponent", exponent, "0 to 8 for integers")
    if exponent < 2:
        b.vector("int_affine", (x,), out, exponent, 1 - exponent)
        return
    value = x
    for number in range(2, exponent + 1):
        target = out if number == exponent else b.temp(DType.INT32, out.sizes)
        b.vector("int_mul", (value, x), target)
        value = target


@TABLE.op("pow.Tensor_Tensor")
def power_of(b: ProgramBuilder, out: TensorView, self: TensorView, exponent: TensorView) -> None:
    """self ^ exponent"""
    if out.dtype not in FLOATS:
        raise b.unsupported("dtype", out.dtype.name, "a floating-point type")
    b.vector("pow", (as_float(b, self), as_float(b, exponent)), out)


@TABLE.op("pow.Scalar")
def power_to(b: ProgramBuilder, out: TensorView, self: Scalar, exponent: TensorView) -> None:
    """A number ^ exponent"""
    power_of(b, out, constant(b, float(self), DType.FP32), exponent)


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
    else:
        b.vector(f"int_{name}", (self, other), out)


@TABLE.op("clamp", "clamp_", "hardtanh", "hardtanh_")
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
    bounds = (_INT_MIN if min is None else min, _INT_MAX if max is None else max)
    low, high = (sorted((_INT_MIN, whole(b, bound), _INT_MAX))[1] for bound in bounds)
    b.vector("int_clamp", (self,), out, low, high)


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
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            wide = DType.FP32 if is_float(out) else DType.INT32
            last = name == "minimum" or max is None
            target = out if last else b.temp(wide, out.sizes)
            _pick(b, name, target, value, bound)
            value = target
    if value is self:
        convert(b, self, out)
