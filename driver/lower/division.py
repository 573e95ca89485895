# SPDX-License-Identifier: Apache-2.0
"""Rounding to whole numbers, remainders, and quotients rounded to whole numbers.

Remainders are exact. Integers are of up to 32 bits: a quotient of 64 bits is refused.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower import long
from driver.lower.convert import as_float, constant, convert, is_float
from driver.lower.elementwise import Operand, div, whole
from driver.lower.long_views import is_long
from driver.lower.program import ProgramBuilder
from driver.lower.registry import Rule, Table
from driver.lower.views import TensorView
from driver.lower.words import rounded

TABLE = Table()


def _rounding(program: str) -> Rule:
    def rule(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
        if is_float(out):
            b.vector(program, (self,), out)
        else:
            convert(b, self, out)

    return rule


for _name in ("floor", "ceil", "trunc", "round"):
    TABLE.op(_name, f"{_name}_")(_rounding(_name))


@TABLE.op("round.decimals", "round_.decimals")
def round_decimals(
    b: ProgramBuilder, out: TensorView, self: TensorView, *, decimals: int = 0
) -> None:
    """To so many decimals; as torch does, by a power of ten rounded to the type"""
    if not is_float(out):
        raise b.unsupported("dtype", out.dtype.name, "a floating-point type")
    if decimals == 0:
        b.vector("round", (self,), out)
        return
    program = "round_scaled" if decimals > 0 else "round_tens"
    b.vector(program, (self,), out, rounded(10.0 ** abs(decimals), DType.FP32))


@TABLE.op("signbit")
def signbit(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """The sign bit of floats, −0 included; self below 0"""
    if is_long(self):
        long.compare(b, "lt", out, self, 0)
    else:
        b.vector("sign_bit", (self,), out)


@TABLE.op("frac", "frac_")
def frac(b: ProgramBuilder, out: TensorView, self: TensorView) -> None:
    """self less self towards 0"""
    b.vector("frac", (self,), out)


def _pair(
    b: ProgramBuilder, out: TensorView, self: Operand, other: Operand
) -> tuple[TensorView, TensorView]:
    """Both as tensors of the result's kind; numbers in the type that torch gives them."""
    if is_long(out) or out.boolean:
        expected = "a floating-point type or an integer type of up to 32 bits"
        raise b.unsupported("dtype", "bool" if out.boolean else out.dtype.name, expected)
    if is_float(out):
        left, right = (
            as_float(b, x)
            if isinstance(x, TensorView)
            else constant(b, rounded(float(x), out.dtype), DType.FP32)
            for x in (self, other)
        )
        return left, right
    left, right = (
        x if isinstance(x, TensorView) else constant(b, whole(b, x), DType.INT32)
        for x in (self, other)
    )
    return left, right


def _fmod(b: ProgramBuilder, left: TensorView, right: TensorView, out: TensorView) -> TensorView:
    """The remainders towards 0 of floats, in fp32, of the result's sizes."""
    rest = b.temp(DType.FP32, out.sizes)
    b.vector("fmod", (left, right), rest)
    return rest


@TABLE.op("fmod.Tensor", "fmod_.Tensor", "fmod.Scalar", "fmod_.Scalar")
def fmod(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """The remainder with the sign of self, exact"""
    pair = _pair(b, out, self, other)
    b.vector("fmod" if is_float(out) else "int_fmod", pair, out)


@TABLE.op("remainder.Tensor", "remainder_.Tensor", "remainder.Scalar", "remainder_.Scalar")
@TABLE.op("remainder.Scalar_Tensor")
def remainder(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """The remainder with the sign of other"""
    left, right = _pair(b, out, self, other)
    if is_float(out):
        b.vector("remainder_of_fmod", (_fmod(b, left, right, out), right), out)
    else:
        b.vector("int_remainder", (left, right), out)


@TABLE.op("floor_divide", "floor_divide_.Tensor", "floor_divide.Scalar", "floor_divide_.Scalar")
def floor_divide(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """self ÷ other towards −∞"""
    left, right = _pair(b, out, self, other)
    if is_float(out):
        b.vector("floor_of_fmod", (left, right, _fmod(b, left, right, out)), out)
    else:
        b.vector("int_div_floor", (left, right), out)


@TABLE.op("div.Tensor_mode", "div_.Tensor_mode", "div.Scalar_mode", "div_.Scalar_mode")
def div_mode(
    b: ProgramBuilder,
    out: TensorView,
    self: Operand,
    other: Operand,
    *,
    rounding_mode: str | None,
) -> None:
    """self ÷ other, as it is, towards 0 or towards −∞"""
    if rounding_mode is None:
        div(b, out, self, other)
    elif rounding_mode == "floor":
        floor_divide(b, out, self, other)
    else:
        pair = _pair(b, out, self, other)
        b.vector("div_trunc" if is_float(out) else "int_div_trunc", pair, out)
