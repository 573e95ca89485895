# SPDX-License-Identifier: Apache-2.0
"""Samples of int64 beyond 32 bits, of floats around the ends of the integer types, of five
dimensions that do not merge, and of equal elements."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import FLOATS, NUMBERS, Sample, T

_LONG = (torch.int64,)
_FAR = 1 << 40
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)


def _x(*shape: int) -> T:
    return T(shape or None, "words")


def _elements() -> Iterator[Sample]:
    for name in ("add.Tensor", "sub.Tensor", "rsub.Tensor", "mul.Tensor"):
        yield Sample(f"aten.{name}", (_x(), _x()), _LONG)
    for name in ("maximum.default", "minimum.default", "logical_and.default"):
        yield Sample(f"aten.{name}", (_x(), _x()), _LONG)
    yield Sample("aten.add.Tensor", (_x(3, 5), _x(3, 5)), _LONG, {"alpha": -3})
    yield Sample("aten.add.Tensor", (_x(3, 5), T((5,), dtype=torch.int32)), _LONG)
    yield Sample("aten.add_.Tensor", (T((3, 5), "words", plain=True), _x(5)), _LONG)
    for name in ("add", "sub", "mul"):
        yield Sample(f"aten.{name}.Scalar", (_x(3, 5), _FAR + 3), _LONG)
    for name in ("neg", "abs", "bitwise_not", "logical_not"):
        yield Sample(f"aten.{name}.default", (_x(),), _LONG)
    yield Sample("aten.bitwise_xor.Tensor", (_x(), _x()), _LONG)
    yield Sample("aten.clamp.default", (_x(), -_FAR, (1 << 32) + 7), _LONG)
    for name in _COMPARISONS:
        yield Sample(f"aten.{name}.Tensor", (_x(), _x()), _LONG)
        yield Sample(f"aten.{name}.Scalar", (_x(), 1 << 32), _LONG)


def _moves() -> Iterator[Sample]:
    mask = T((4, 9), dtype=torch.bool)
    yield Sample("aten.where.self", (mask, _x(4, 9), _x(4, 9)), _LONG)
    yield Sample("aten.masked_fill.Scalar", (_x(4, 9), mask, -_FAR), _LONG)
    yield Sample("aten.constant_pad_nd.default", (_x(4, 9), [1, 2], _FAR), _LONG)
    yield Sample("aten.tril.default", (_x(5, 7), 1), _LONG)
    yield Sample("aten.cat.default", ([_x(2, 3), _x(4, 3)],), _LONG)
    places = T((4, 3), "index", torch.int64, 9)
    yield Sample("aten.gather.default", (_x(4, 9), 1, places), _LONG)
    for value in (_FAR + 1, -1, -(1 << 63)):
        yield Sample("aten.full.default", ([3, 5], value), _LONG, {"dtype": torch.int64})
    for start, end, step in (((1 << 31) - 9, (1 << 31) + 9, 1), (7, -_FAR, -(_FAR >> 4))):
        kind = {"dtype": torch.int64}
        yield Sample("aten.arange.start_step", (start, end, step), _LONG, kind)
    yield Sample("aten.arange.start_step", (0.1, 1.1, 0.1), (torch.float32,))


def _conversions() -> Iterator[Sample]:
    for dtype in (*FLOATS, *_INTEGERS):
        kind = {"dtype": dtype}
        yield Sample("aten._to_copy.default", (_x(),), _LONG, kind)
        yield Sample(
            "aten._to_copy.default",
            (T((4, 33), "near integer limits"),),
            FLOATS,
            kind,
            special=False,
        )


def _shifts() -> Iterator[Sample]:
    every = (torch.int64, torch.int32, torch.int8, torch.uint8)
    counts = T((3, 13), "index", limit=70)
    for side, short in (("left", "l"), ("right", "r")):
        for place in ("", "_"):
            name = f"aten.bitwise_{side}_shift{place}"
            x = T((3, 13), "words", plain=bool(place))
            yield Sample(f"{name}.Tensor", (x, counts), every)
            yield Sample(f"{name}.Tensor_Scalar", (x, 33), every)
        yield Sample(f"aten.bitwise_{side}_shift.Scalar_Tensor", (-7, counts), every)
        for name in (f"__{short}shift__", f"__i{short}shift__"):
            x = T((3, 13), "words", plain="_i" in name)
            yield Sample(f"aten.{name}.Tensor", (x, counts), every)
            for count in (5, 40, -1):
                yield Sample(f"aten.{name}.Scalar", (x, count), every)


def _signs() -> Iterator[Sample]:
    for place in ("", "_"):
        x = T(None, "words", plain=bool(place))
        yield Sample(f"aten.sign{place}.default", (x,), (*_INTEGERS,))
        yield Sample(f"aten.sign{place}.default", (T(plain=bool(place)),), FLOATS)


def _sums_by_index() -> Iterator[Sample]:
    for form, first in (("", _x(4, 7)), ("_", T((4, 7), "words", plain=True))):
        places = T((4, 6), "index", torch.int64, 7)
        yield Sample(f"aten.scatter_add{form}.default", (first, 1, places, _x(4, 6)), _LONG)
        rows = (first, 0, T((6,), "index", torch.int64, 4), _x(6, 7))
        yield Sample(f"aten.index_add{form}.default", rows, _LONG)
    puts = (_x(4, 7), [T((6,), "index", torch.int64, 4)], _x(6, 7), True)
    yield Sample("aten.index_put.default", puts, _LONG)


def _division() -> Iterator[Sample]:
    divisors = T((4, 9), "positive")
    for name in ("fmod", "remainder"):
        yield Sample(f"aten.{name}.Tensor", (_x(4, 9), divisors), _LONG)
        yield Sample(f"aten.{name}.Scalar", (_x(4, 9), -_FAR - 1), _LONG)
    yield Sample("aten.remainder.Scalar", (_x(4, 9), 1 << 33), _LONG)
    yield Sample("aten.floor_divide.default", (_x(4, 9), divisors), _LONG)
    yield Sample("aten.floor_divide_.Scalar", (T((4, 9), "words", plain=True), 1 << 33), _LONG)
    for mode in ("floor", "trunc"):
        options = {"rounding_mode": mode}
        yield Sample("aten.div.Tensor_mode", (_x(4, 9), divisors), _LONG, options)


def _order() -> Iterator[Sample]:
    for down in (False, True):
        yield Sample("aten.sort.default", (_x(3, 13), -1, down), _LONG)
        yield Sample("aten.topk.default", (_x(3, 13), 4, -1, down), _LONG)
    yield Sample("aten.argsort.default", (_x(4, 6), 1), _LONG)


def _rows() -> Iterator[Sample]:
    yield Sample("aten.sum.default", (_x(),), _LONG)
    for shape, dims in (((3, 21), [1]), ((2, 3, 17), [0, 2])):
        yield Sample("aten.sum.dim_IntList", (_x(*shape), dims), _LONG)
    for name in ("amax", "amin"):
        yield Sample(f"aten.{name}.default", (_x(3, 21), [1]), _LONG)
        yield Sample(f"aten.{name}.default", (_x(2, 3, 17), [0, 2], True), _LONG)
    for name in ("max.dim", "min.dim", "argmax.default", "argmin.default"):
        yield Sample(f"aten.{name}", (_x(4, 19), 1), _LONG)
    yield Sample("aten.cumsum.default", (_x(3, 21), 1), _LONG)
    yield Sample("aten.any.dim", (_x(3, 21), 1), _LONG)


def _equal_elements() -> Iterator[Sample]:
    ties = T((4, 33), "ties")
    for name in _COMPARISONS:
        yield Sample(f"aten.{name}.Tensor", (ties, ties), NUMBERS, special=False)
        yield Sample(f"aten.{name}.Scalar", (ties, 2), NUMBERS, special=False)


def _five_dimensions() -> Iterator[Sample]:
    x = T((2, 3, 2, 3, 2))
    places = T((2, 3, 2, 2, 2), "index", torch.int64, 3)
    yield Sample("aten.add.Tensor", (x, x), NUMBERS)
    yield Sample("aten.clone.default", (x,), NUMBERS)
    yield Sample("aten.sum.dim_IntList", (x, [0, 2, 4]), NUMBERS)
    yield Sample("aten.gather.default", (x, 3, places), NUMBERS)


SAMPLES = (
    *(*_elements(), *_moves(), *_conversions(), *_rows()),
    *(*_shifts(), *_signs(), *_order(), *_division(), *_sums_by_index()),
    *(*_equal_elements(), *_five_dimensions()),
)
