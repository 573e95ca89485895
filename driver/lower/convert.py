# SPDX-License-Identifier: Apache-2.0
"""Element types: conversions of all pairs, and the type in which an op computes."""

from __future__ import annotations

from dataclasses import replace

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.long_views import is_long
from driver.lower.registry import Scalar
from driver.lower.words import FLOATS
from driver.runtime.views import TensorView


def is_float(view: TensorView) -> bool:
    """Whether the vector engine sees the elements as fp32; as int32 otherwise."""
    return view.dtype in FLOATS


def word_type(view: TensorView) -> DType:
    """The type of values between packets: fp32, int32, or int64 where the view is int64."""
    if is_float(view):
        return DType.FP32
    return DType.INT64 if is_long(view) else DType.INT32


def convert(b: ProgramBuilder, source: TensorView, result: TensorView) -> None:
    """Store the source's elements, broadcast, as the result's type: torch's `to` and `copy_`."""
    source = b.expanded(source, result.sizes)
    if result.boolean and not source.boolean:
        _truth(b, source, result)
    elif source.dtype == result.dtype:
        b.copy(source, result)
    elif is_float(source) == is_float(result):
        b.vector("move", (source,), result)
    elif is_long(source):
        long.to_float(b, result, source)
    elif is_long(result):
        long.from_float(b, result, source)
    else:
        b.vector("float_to_int" if is_float(source) else "int_to_float", (source,), result)


def _truth(b: ProgramBuilder, source: TensorView, result: TensorView) -> None:
    """1 where the source's number is not 0."""
    if is_long(source):
        long.truth(b, result, source)
    else:
        b.vector("float_truth" if is_float(source) else "int_truth", (source,), result)


def as_type(b: ProgramBuilder, view: TensorView, dtype: DType) -> TensorView:
    """The view, or its elements as `dtype` in fresh memory. Repeated elements (strides of 0)
    are stored once.
    """
    if view.dtype is dtype:
        return view
    walk = zip(view.sizes, view.strides, strict=True)
    once = view.reshaped([size if stride else 1 for size, stride in walk], view.strides)
    fresh = b.temp(dtype, once.sizes)
    convert(b, once, fresh)
    return b.expanded(fresh, view.sizes)


def as_compared(
    b: ProgramBuilder, left: TensorView, right: TensorView
) -> tuple[TensorView, TensorView]:
    """Two integer tensors in the type that torch compares them in, as far as that loses bits: one
    without dimensions takes the type of the other, if that is no truth value."""
    if left.rank and not right.rank and not left.boolean:
        return left, as_type(b, right, left.dtype)
    if right.rank and not left.rank and not right.boolean:
        return as_type(b, left, right.dtype), right
    return left, right


def as_float(b: ProgramBuilder, view: TensorView) -> TensorView:
    """The view, or its integers as fp32 in fresh memory."""
    return view if is_float(view) else as_type(b, view, DType.FP32)


def common_float(*views: TensorView) -> DType:
    """The type that torch converts these to before it computes in floats: that of the floats with
    dimensions, else of those without; fp32 where they differ, or where all are integers."""
    floats = [view for view in views if is_float(view)]
    found = {view.dtype for view in floats if view.rank} or {view.dtype for view in floats}
    return found.pop() if len(found) == 1 else DType.FP32


def rounded_to(b: ProgramBuilder, view: TensorView, dtype: DType) -> TensorView:
    """The view as floats, its elements rounded to `dtype` where that loses bits."""
    exact = is_float(view) and dtype in (DType.FP32, view.dtype)
    return view if exact else as_type(b, view, dtype)


def promoted(b: ProgramBuilder, *views: TensorView) -> tuple[TensorView, ...]:
    """The operands of an op of floats, rounded to the type that torch converts them to first."""
    dtype = common_float(*views)
    return tuple(rounded_to(b, view, dtype) for view in views)


def as_truth(b: ProgramBuilder, view: TensorView) -> TensorView:
    """The view if it is torch.bool, else 0 and 1 in fresh memory."""
    if view.boolean:
        return view
    fresh = replace(b.temp(DType.UINT8, view.sizes), boolean=True)
    convert(b, view, fresh)
    return fresh


def require_numbers(b: ProgramBuilder, view: TensorView) -> None:
    """Refuse truth values, where torch has no such op either."""
    if view.boolean:
        raise b.unsupported("dtype", "bool", "a type of numbers")


def require_floats(b: ProgramBuilder, *views: TensorView) -> None:
    """Refuse tensors of integers and truth values."""
    for view in views:
        if not is_float(view):
            raise b.unsupported("dtype", view.dtype.name, "a floating-point type")


def require_integers(b: ProgramBuilder, *views: object) -> None:
    """Refuse tensors of floats; numbers are not looked at."""
    for view in views:
        if isinstance(view, TensorView) and is_float(view):
            raise b.unsupported("dtype", view.dtype.name, "an integer type")


def as_integer(b: ProgramBuilder, value: Scalar) -> int:
    """A number that integer arithmetic can take. UnsupportedOp for a fraction."""
    if value != int(value):
        raise b.unsupported("scalar", value, "an integer for integer operands")
    return int(value)


def constant(
    b: ProgramBuilder, value: Scalar, dtype: DType, *, boolean: bool = False
) -> TensorView:
    """A number as a 0-d tensor in fresh memory; a truth value if `boolean`."""
    fresh = replace(b.temp(dtype, ()), boolean=boolean)
    b.fill(fresh, value)
    return fresh


def number(b: ProgramBuilder, value: float) -> TensorView:
    """A number as an fp32 operand, without a packet."""
    return b.table(DType.FP32, (value,)).reshaped((), ())
