# SPDX-License-Identifier: Apache-2.0
"""Functions of one element, and powers: a program each, with variants by type where there are."""

from __future__ import annotations

from driver.isa import DType
from driver.isa.programs import PROGRAMS
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import (
    as_float,
    as_integer,
    constant,
    convert,
    is_float,
    promoted,
    word_type,
)
from driver.lower.elementwise import divide_by, mul
from driver.lower.long_views import is_long
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.lower.words import INT32_MAX
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_HALVES = (DType.FP16, DType.BF16)


_FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tanh", "sigmoid"),
    *("erf", "silu", "sqrt", "rsqrt", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh"),
    *("acosh", "atanh"),
)
"""ATen functions of a float that are programs of the same name."""


def variant(name: str, dtype: DType) -> str:
    """The program of that name; a shorter one where it is good enough for the result's type."""
    short = (f"{name}_{dtype.name.lower()}", f"{name}_16" if dtype in _HALVES else name)
    return next((candidate for candidate in short if candidate in PROGRAMS), name)


def _function(name: str) -> RuleFunction:
    def rule(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
        b.vector(variant(name, out.dtype), (as_float(b, self),), out)

    return rule


for _name in _FUNCTIONS:
    if _name not in PROGRAMS:
        raise LookupError(f"{_name} of _FUNCTIONS: expected the name of a program")
    TABLE.op(_name, f"{_name}_")(_function(_name))


@TABLE.op("atan2", "atan2_")
def atan2(b: ProgramBuilder, out: TensorView, self: TensorView, other: TensorView) -> None:
    """The angle of the point (other, self)"""
    b.vector("atan2", promoted(b, self, other), out)


@TABLE.op("softplus")
def softplus(
    b: ProgramBuilder, out: TensorView, self: TensorView, beta: Scalar = 1, threshold: Scalar = 20
) -> None:
    """log(1 + e^(beta·self)) ÷ beta; self where beta·self is above the threshold"""
    if beta == 1 and threshold >= _SOFTPLUS_EXACT:
        b.vector("softplus", (self,), out)
        return
    scaled, soft = (b.temp(DType.FP32, out.sizes) for _ in range(2))
    b.vector("affine", (self,), scaled, float(beta), -0.0)
    b.vector("softplus", (scaled,), soft)
    divide_by(b, soft, soft, beta)
    beyond = b.temp(DType.UINT8, out.sizes)
    b.vector("greater_imm", (scaled,), beyond, float(threshold))
    b.vector("where", (beyond, self, soft), out)


_SOFTPLUS_EXACT = 18
"""From here on log(1 + eˣ) is x to half a unit in the last place."""


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
    b.vector(variant(program, out.dtype), (self,), out)


@TABLE.op("relu", "relu_")
def relu(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """max(self, 0)"""
    if is_float(self):
        b.vector("relu", (self,), out)
    elif is_long(out):
        long.pick(b, "gt", out, self, 0)
    else:
        b.vector("int_clamp", (self,), out, 0, INT32_MAX)


@TABLE.op("neg", "neg_")
def neg(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """−self"""
    if is_float(self):
        b.vector("neg", (self,), out)
    elif is_long(out):
        long.negate(b, out, self)
    else:
        b.vector("int_affine", (self,), out, -1, 0)


@TABLE.op("sign", "sign_")
def sign(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """−1, 0 or 1; 0 for NaN"""
    if is_float(self):
        b.vector("float_sign", (self,), out)
    else:
        long.sign(b, out, self)


@TABLE.op("abs", "abs_")
def absolute(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """|self|"""
    if is_long(out):
        long.absolute(b, out, self)
    else:
        b.vector("abs" if is_float(self) else "int_abs", (self,), out)


@TABLE.op("square")
def square(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """self²"""
    power(b, out, self, 2)


# ---------------------------------------------------------------------- powers
@TABLE.op("pow.Tensor_Scalar", "pow_.Scalar")
def power(b: ProgramBuilder, out: TensorView, self: TensorView, exponent: Scalar) -> None:
    """self ^ exponent; small powers as torch computes them, by products"""
    if not is_float(out):
        _int_power(b, out, self, as_integer(b, exponent))
        return
    x = as_float(b, self)
    if exponent == 0:
        b.fill(out, 1.0)
    elif exponent == 1:
        b.vector("move", (x,), out)
    elif exponent == 2:
        b.vector("square", (x,), out)
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
    """By squares: a product for each bit of the exponent, and one more for each that is set."""
    if exponent < 0:
        raise b.unsupported("exponent", exponent, "0 or more for integers")
    if exponent == 0:
        b.fill(out, 1)
        return
    value = x
    for bit in f"{exponent:b}"[1:]:
        for other in (value, x) if bit == "1" else (value,):
            fresh = b.temp(word_type(out), out.sizes)
            mul(b, fresh, value, other)
            value = fresh
    convert(b, value, out)


@TABLE.op("pow.Tensor_Tensor")
def power_of(b: ProgramBuilder, out: TensorView, self: TensorView, exponent: TensorView) -> None:
    """self ^ exponent"""
    if is_long(out) or out.boolean:
        expected = "a floating-point type or an integer type of up to 32 bits"
        raise b.unsupported("dtype", "bool" if out.boolean else out.dtype.name, expected)
    if is_float(out):
        b.vector("pow", promoted(b, self, exponent), out)
    else:
        b.vector("int_pow", (self, exponent), out)


@TABLE.op("pow.Scalar")
def power_to(b: ProgramBuilder, out: TensorView, self: Scalar, exponent: TensorView) -> None:
    """A number, which is not rounded to 16 bits, ^ exponent"""
    if is_float(out):
        base = constant(b, float(self), DType.FP32)
        b.vector("pow", (base, as_float(b, exponent)), out)
    else:
        power_of(b, out, constant(b, self, DType.INT32), exponent)
