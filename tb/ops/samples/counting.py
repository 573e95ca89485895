# SPDX-License-Identifier: Apache-2.0
"""Samples of ops that count, that find distinct elements, and of scatter_reduce."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import BOOL, FLOATS, NUMBERS, Sample, T

_I64, _I32 = torch.int64, torch.int32


def _searches() -> Iterator[Sample]:
    rising = T((9,), "rising", plain=True)
    for right in (False, True):
        side = {"right": right}
        yield Sample("aten.searchsorted.Tensor", (rising, T((3, 7))), NUMBERS, side, special=False)
        rows = (T((3, 9), "rising", plain=True), T((3, 7)))
        yield Sample("aten.searchsorted.Tensor", rows, NUMBERS, {**side, "out_int32": True},
                     special=False)  # fmt: skip
        yield Sample("aten.searchsorted.Scalar", (rising, 3), NUMBERS, side, special=False)
        yield Sample("aten.bucketize.Tensor", (T(), rising), NUMBERS, side, special=False)
    for invert in (False, True):
        named = {"invert": invert}
        yield Sample("aten.isin.Tensor_Tensor", (T((3, 7)), T((5,))), NUMBERS, named)
        yield Sample("aten.isin.Tensor_Scalar", (T((3, 7)), 3), NUMBERS, named)
    yield Sample("aten.isin.Tensor_Tensor", (T((300,), "ties"), T((0,))), (_I64,))


def _bins() -> Iterator[Sample]:
    for dtype in (_I64, _I32, torch.uint8):
        yield Sample("aten.bincount.default", (T((50,), "index", dtype, 9),), (dtype,))
    yield Sample("aten.bincount.default", (T((50,), "index", _I64, 9), None, 20), (_I64,))
    fp32 = FLOATS[:1]
    for limits in ((), (10,), (7, -1, 2), (16, 0, 15)):
        yield Sample("aten.histc.default", (T((300,)), *limits), fp32, special=False)
    yield Sample("aten.histc.default", (T((40,), "index", torch.float32, 8), 8, 0, 7), fp32)
    yield Sample("aten.histc.default", (T((5,), "all set"), 4), fp32, special=False)


def _distinct() -> Iterator[Sample]:
    for shape in ((40,), (3, 13), (1,)):
        for options in ((True, False, False), (True, True, True)):
            yield Sample("aten._unique2.default", (T(shape, "ties"), *options), NUMBERS)
            yield Sample(
                "aten.unique_consecutive.default", (T(shape, "ties"), *options[1:]), NUMBERS
            )
    yield Sample("aten._unique2.default", (T((30,)), True, True, True), (*BOOL, _I64))
    yield Sample("aten._unique2.default", (T((700,)), True, True, True), (_I32,))


def _scatters() -> Iterator[Sample]:
    place = T((4, 6), "index", _I64, 7)
    for form, first in (("", T((4, 7))), ("_", T((4, 7), plain=True))):
        op = f"aten.scatter_reduce{form}.two"
        for kept in (True, False):
            named = {"include_self": kept}
            for kind in ("amax", "amin"):
                args = (first, 1, place, T((4, 6)), kind)
                yield Sample(op, args, (*FLOATS, _I32, torch.int8), named)
            args = (first, 1, place, T((4, 6)), "sum")
            yield Sample(op, args, (*FLOATS, _I32, _I64), named)
            yield Sample(op, (first, 1, place, T((4, 6)), "mean"), FLOATS, named)
    down = (T((4, 7)), 0, T((2, 7), "index", _I64, 4), T((3, 7)), "amax")
    yield Sample("aten.scatter_reduce.two", down, FLOATS)


SAMPLES = (*_searches(), *_bins(), *_distinct(), *_scatters())
