# SPDX-License-Identifier: Apache-2.0
"""Samples of rounding, remainders, products and reordered dimensions."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import BOOL, EVERY, FLOATS, INTS, NUMBERS, Sample, T

_SHORT_INTS = (torch.int32, torch.int8, torch.uint8)
_DIVIDED = (*FLOATS, *_SHORT_INTS, torch.int64)


def _rounding() -> Iterator[Sample]:
    for name in ("floor", "ceil", "trunc", "round"):
        for place, first in (("", T()), ("_", T(plain=True))):
            yield Sample(f"aten.{name}{place}.default", (first,), NUMBERS)
    for place, first in (("", T()), ("_", T(plain=True))):
        yield Sample(f"aten.frac{place}.default", (first,))
        for decimals in (2, 0, -1):
            options = {"decimals": decimals}
            yield Sample(
                f"aten.round{place}.decimals", (first,), (torch.float32,), options, special=False
            )
    yield Sample("aten.signbit.default", (T(),), EVERY)


def _division() -> Iterator[Sample]:
    second = T(values="positive")
    for place, first in (("", T()), ("_", T(plain=True))):
        for name in ("fmod", "remainder"):
            op = f"aten.{name}{place}"
            yield Sample(f"{op}.Tensor", (first, second), _DIVIDED)
            yield Sample(f"{op}.Scalar", (first, 3), _DIVIDED)
            yield Sample(f"{op}.Scalar", (first, -1.5), FLOATS)
        whole = "aten.floor_divide.default" if not place else "aten.floor_divide_.Tensor"
        yield Sample(whole, (first, second), _DIVIDED)
        yield Sample(f"aten.floor_divide{place}.Scalar", (first, -3), (*FLOATS, torch.int32))
        for mode in ("floor", "trunc", None):
            options, dtypes = {"rounding_mode": mode}, _DIVIDED if mode else FLOATS
            yield Sample(f"aten.div{place}.Tensor_mode", (first, second), dtypes, options)
            yield Sample(f"aten.div{place}.Scalar_mode", (first, 3), dtypes, options)
    yield Sample("aten.remainder.Scalar_Tensor", (7, second), _DIVIDED)


def _products() -> Iterator[Sample]:
    dtypes = (*FLOATS, torch.int32, torch.int64)
    yield Sample("aten.prod.default", (T((3, 7)),), dtypes, special=False)
    yield Sample("aten.prod.default", (T((0,)),), dtypes)
    for dim, keepdim in ((0, False), (-1, True)):
        yield Sample(
            "aten.prod.dim_int", (T((5, 17)), dim, keepdim), (*dtypes, *BOOL), special=False
        )
    yield Sample("aten.cumprod.default", (T((4, 9)), -1), (*dtypes, torch.int8))
    yield Sample("aten.cumprod_.default", (T((9, 2), plain=True), 0), dtypes)
    for name in ("cummax", "cummin"):
        yield Sample(f"aten.{name}.default", (T((3, 19), values="ties"), -1), (*FLOATS, *INTS))
        yield Sample(f"aten.{name}.default", (T((6, 2)), 0), FLOATS)


def _order() -> Iterator[Sample]:
    yield Sample("aten.flip.default", (T((3, 4, 5)), (0, -1)), EVERY)
    yield Sample("aten.flip.default", (T((7,)), (0,)), EVERY)
    yield Sample("aten.roll.default", (T((3, 5)), (2, -1), (0, 1)), EVERY)
    yield Sample("aten.roll.default", (T((3, 5)), (4,)), EVERY)


SAMPLES = (*_rounding(), *_division(), *_products(), *_order())
