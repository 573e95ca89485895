# SPDX-License-Identifier: Apache-2.0
"""Samples of ops that go element by element."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import BOOL, EVERY, FLOATS, INTS, NUMBERS, Sample, T

_INT32_64 = (torch.int32, torch.int64)
_SIGNED = (*FLOATS, torch.int32, torch.int64, torch.int8)


def _both(
    name: str,
    *args: object,
    dtypes: tuple[torch.dtype, ...] = FLOATS,
    place: bool = True,
    refused: tuple[torch.dtype, ...] = (),
    **kwargs: object,
) -> Iterator[Sample]:
    """The op and its form in place, which writes to its first argument."""
    base, _, overload = name.partition(".")
    overload = overload or "default"
    yield Sample(f"aten.{base}.{overload}", args, dtypes, kwargs, refused)
    if place:
        first = T(plain=True)
        yield Sample(f"aten.{base}_.{overload}", (first, *args[1:]), dtypes, kwargs, refused)


_FUNCTIONS: tuple[str, ...] = (
    *("reciprocal", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid", "erf"),
    *("relu", "silu", "exp2", "expm1", "log2", "log10", "log1p", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "asinh", "acosh", "atanh"),
)
_INTEGERS_TOO = {"relu"}
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
_OPERATORS = ("__and__", "__or__", "__xor__")


def _arithmetic() -> Iterator[Sample]:
    for name in ("add", "sub", "mul"):
        dtypes = NUMBERS if name == "sub" else EVERY
        yield from _both(f"{name}.Tensor", T(), T(), dtypes=dtypes)
        yield from _both(f"{name}.Scalar", T(), 3, dtypes=NUMBERS)
        yield Sample(f"aten.{name}.Tensor", (T((4, 6)), T((6,))), NUMBERS)
        yield Sample(f"aten.{name}.Tensor", (T((3, 1, 4)), T((2, 1))), FLOATS)
        yield Sample(f"aten.{name}.Tensor", (T(), 1.7), FLOATS)
    for name in ("add", "sub"):
        yield Sample(f"aten.{name}.Tensor", (T(), T()), FLOATS, {"alpha": -2.5})
        yield Sample(f"aten.{name}.Tensor", (T(), T()), _INT32_64, {"alpha": 3})
    yield Sample("aten.rsub.Tensor", (T(), T()), FLOATS)
    yield Sample("aten.rsub.Scalar", (T(), 1.5), FLOATS)
    yield from _both("div.Tensor", T(), T(values="positive"))
    yield from _both("div.Scalar", T(), 3.0)
    for name in ("neg", "abs"):
        yield from _both(name, T(), dtypes=_SIGNED)
    yield Sample("aten.square.default", (T(),))
    for name in ("minimum", "maximum"):
        yield Sample(f"aten.{name}.default", (T(), T()), EVERY)
    for name in ("min", "max"):
        yield Sample(f"aten.{name}.other", (T(), T()), NUMBERS)
    yield Sample("aten.addcmul.default", (T(), T(), T()), FLOATS, {"value": 0.5})


def _powers() -> Iterator[Sample]:
    for exponent in (2, 3, 0.5, -1, 2.5):
        yield Sample("aten.pow.Tensor_Scalar", (T(values="positive"), exponent), special=False)
    yield Sample("aten.pow_.Scalar", (T(plain=True), 2))
    yield Sample("aten.pow.Tensor_Tensor", (T(values="positive"), T()), special=False)
    yield Sample("aten.pow.Scalar", (2.0, T()), special=False)


def _functions() -> Iterator[Sample]:
    for name in _FUNCTIONS:
        dtypes = (*FLOATS, torch.int32) if name in _INTEGERS_TOO else FLOATS
        values = "positive" if name.startswith("log") else "any"
        yield from _both(name, T(values=values), dtypes=dtypes)
    yield from _both("atan2", T(), T())
    yield Sample("aten.softplus.default", (T(),))
    for approximate in ("none", "tanh"):
        yield from _both("gelu", T(), approximate=approximate)
    yield from _both("clamp", T(), -0.5, 1.25)
    yield from _both("clamp", T(), -2, 5, dtypes=_INT32_64)
    yield Sample("aten.clamp.default", (T(), None, 0.5))
    yield Sample("aten.clamp.Tensor", (T(), T(), T(values="positive")))
    yield from _both("clamp_min", T(), 0.25)
    yield from _both("clamp_max", T(), 0.25)
    yield from _both("hardtanh", T(), -1.0, 1.0)


def _truth() -> Iterator[Sample]:
    for name in _COMPARISONS:
        yield Sample(f"aten.{name}.Tensor", (T(), T()), EVERY)
        yield Sample(f"aten.{name}.Scalar", (T(), 1), NUMBERS)
        yield Sample(f"aten.{name}.Scalar", (T(), 0.3), FLOATS)
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield from _both(name, T(), T(), dtypes=EVERY)
    yield from _both("logical_not", T(), dtypes=EVERY)
    for name in _BITWISE:
        yield from _both(f"{name}.Tensor", T(), T(), dtypes=(*INTS, *BOOL))
        yield from _both(f"{name}.Scalar", T(), 1, dtypes=(torch.int32,))
    yield from _both("bitwise_not", T(), dtypes=(*INTS, *BOOL))
    for name in _OPERATORS:
        place = f"__i{name[2:]}"
        for overload, other in (("Tensor", T()), ("Scalar", 1)):
            types = (torch.int32, *(BOOL if overload == "Tensor" else ()))
            yield Sample(f"aten.{name}.{overload}", (T(), other), types)
            yield Sample(f"aten.{place}.{overload}", (T(plain=True), other), types)
    yield Sample("aten.isnan.default", (T(),))
    yield Sample("aten.isinf.default", (T(),))


def _choices() -> Iterator[Sample]:
    mask = T(dtype=torch.bool)
    yield Sample("aten.where.self", (mask, T(), T()), EVERY)
    yield Sample("aten.where.self", (T((3, 1), dtype=torch.bool), T((3, 5)), T((1, 5))), NUMBERS)
    yield from (
        Sample(f"aten.masked_fill{place}.{overload}", (first, mask, value), NUMBERS)
        for place, first in (("", T()), ("_", T(plain=True)))
        for overload, value in (("Scalar", 2), ("Tensor", T((), plain=True)))
    )


SAMPLES = (*_arithmetic(), *_powers(), *_functions(), *_truth(), *_choices())
