# SPDX-License-Identifier: Apache-2.0
"""Rounding to whole numbers, remainders, and quotients rounded to whole numbers.

Remainders are exact. int64 is divided in long_divide.py.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower import long, long_divide
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import (
    as_float,
    as_integer,
    as_type,
    constant,
    convert,
    is_float,
    promoted,
    require_floats,
    require_numbers,
)
from driver.lower.elementwise import Operand, div, factors
from driver.lower.long_views import is_long
from driver.lower.registry import LoweringTable, RuleFunction
from driver.lower.words import rounded, wrapped
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _rounding(program: str) -> RuleFunction:
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
    require_floats(b, out)
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


def _operand(b: ProgramBuilder, x: Operand, dtype: DType) -> TensorView:
    """A tensor as floats, or a Python number rounded to the type."""
    if isinstance(x, TensorView):
        return as_float(b, x)
    return constant(b, rounded(float(x), dtype), DType.FP32)


def _quotient(
    b: ProgramBuilder, out: TensorView, self: Operand, other: Operand
) -> tuple[TensorView, ...]:
    """Operands of a quotient: torch keeps the number that it divides by in fp32."""
    if isinstance(self, TensorView) and isinstance(other, TensorView):
        return factors(b, self, other)
    return _operand(b, self, out.dtype), _operand(b, other, DType.FP32)


def _rest(
    b: ProgramBuilder, out: TensorView, self: Operand, other: Operand
) -> tuple[TensorView, ...]:
    """Operands of a remainder: numbers too are rounded to the result's type."""
    if isinstance(self, TensorView) and isinstance(other, TensorView):
        return promoted(b, self, other)
    return _operand(b, self, out.dtype), _operand(b, other, out.dtype)


_INTEGERS = {
    (True, False): "int_fmod",
    (True, True): "int_remainder",
    (False, True): "int_div_floor",
    (False, False): "int_div_trunc",
}
"""Whether the remainder is asked for, whether division is towards −∞ → program of int32."""


def _of_one_type(b: ProgramBuilder, x: Operand, beside: Operand) -> TensorView:
    """An operand modulo the range of the type that torch divides in: numbers, and tensors without
    dimensions, take that of the other operand."""
    if not isinstance(beside, TensorView):
        assert isinstance(x, TensorView), "one of both is a tensor"
        return x
    if not isinstance(x, TensorView):
        return constant(b, wrapped(as_integer(b, x), beside.dtype), DType.INT32)
    alone = not x.rank and beside.rank and not beside.boolean
    return as_type(b, x, beside.dtype) if alone else x


def _divide_integers(
    b: ProgramBuilder,
    out: TensorView,
    self: Operand,
    other: Operand,
    *,
    remainder: bool,
    floor: bool,
) -> None:
    require_numbers(b, out)
    if is_long(out):
        x = self if isinstance(self, TensorView) else long.number(b, as_integer(b, self))
        y = other if isinstance(other, TensorView) else as_integer(b, other)
        long_divide.divide(b, out, x, y, remainder=remainder, floor=floor)
        return
    left, right = _of_one_type(b, self, other), _of_one_type(b, other, self)
    b.vector(_INTEGERS[remainder, floor], (left, right), out)


def _fmod(b: ProgramBuilder, left: TensorView, right: TensorView, out: TensorView) -> TensorView:
    """The remainders towards 0 of floats, in fp32, of the result's sizes."""
    rest = b.temp(DType.FP32, out.sizes)
    b.vector("fmod", (left, right), rest)
    return rest


@TABLE.op("fmod.Tensor", "fmod_.Tensor", "fmod.Scalar", "fmod_.Scalar")
def fmod(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """The remainder with the sign of self, exact"""
    if is_float(out):
        b.vector("fmod", _rest(b, out, self, other), out)
    else:
        _divide_integers(b, out, self, other, remainder=True, floor=False)


@TABLE.op("remainder.Tensor", "remainder_.Tensor", "remainder.Scalar", "remainder_.Scalar")
@TABLE.op("remainder.Scalar_Tensor")
def remainder(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """The remainder with the sign of other"""
    if is_float(out):
        left, right = _rest(b, out, self, other)
        b.vector("remainder_of_fmod", (_fmod(b, left, right, out), right), out)
    else:
        _divide_integers(b, out, self, other, remainder=True, floor=True)


@TABLE.op("floor_divide", "floor_divide_.Tensor", "floor_divide.Scalar", "floor_divide_.Scalar")
def floor_divide(b: ProgramBuilder, out: TensorView, self: Operand, other: Operand) -> None:
    """self ÷ other towards −∞"""
    if is_float(out):
        left, right = _quotient(b, out, self, other)
        b.vector("floor_of_fmod", (left, right, _fmod(b, left, right, out)), out)
    else:
        _divide_integers(b, out, self, other, remainder=False, floor=True)


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
    elif is_float(out):
        b.vector("div_trunc", _quotient(b, out, self, other), out)
    else:
        _divide_integers(b, out, self, other, remainder=False, floor=False)
