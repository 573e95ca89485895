# SPDX-License-Identifier: Apache-2.0
"""Samples of ops that move, join, cut, convert and make tensors."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import EVERY, FLOATS, NUMBERS, Sample, T

_SIGNED = tuple(dtype for dtype in EVERY if dtype != torch.uint8)
"""Results in which a negative number is defined, whatever type it has."""
_WHOLE = tuple(dtype for dtype in EVERY if dtype not in FLOATS)
"""Operands whose negative numbers are defined in every type."""
_MADE = (*FLOATS, torch.int32, torch.int64, torch.int8, torch.uint8, torch.bool)


def _copies() -> Iterator[Sample]:
    yield Sample("aten.clone.default", (T(),), EVERY)
    for name in ("alias_copy", "lift_fresh_copy", "contiguous"):
        yield Sample(f"aten.{name}.default", (T((2, 3, 4)),), EVERY)
    yield Sample("aten.copy.default", (T((3, 5)), T((5,))), NUMBERS, special=False)
    contiguous = {"memory_format": torch.contiguous_format}
    yield Sample("aten.clone.default", (T((2, 3, 4)),), EVERY, contiguous)
    for dtype in _MADE:
        kinds = _WHOLE if dtype == torch.uint8 else EVERY
        yield Sample("aten._to_copy.default", (T(),), kinds, {"dtype": dtype}, special=False)
    for dtype in FLOATS:
        yield Sample("aten._to_copy.default", (T((28, 28)),), FLOATS, {"dtype": dtype})
    number, bytes_ = T(values="positive"), {"dtype": torch.uint8}
    yield Sample("aten._to_copy.default", (number,), FLOATS, bytes_, special=False)
    for given, kinds in ((None, EVERY), (torch.float32, _SIGNED), (torch.int64, EVERY)):
        yield Sample("aten.copy_.default", (T(plain=True), T(dtype=given)), kinds, special=False)
    yield Sample("aten.copy_.default", (T((3, 5), plain=True), T((5,))), NUMBERS, special=False)
    positive = T(values="positive", dtype=torch.float32)
    yield Sample("aten.copy_.default", (T(plain=True), positive), (torch.uint8,), special=False)


def _reads() -> Iterator[Sample]:
    for shape in ((), (1,), (1, 1)):
        yield Sample("aten._local_scalar_dense.default", (T(shape),), EVERY)


def _joins() -> Iterator[Sample]:
    yield Sample("aten.cat.default", ([T((2, 3)), T((4, 3)), T((0, 3))],), EVERY)
    yield Sample("aten.cat.default", ([T((2, 3)), T((2, 5)), T((2, 1))], 1), EVERY)
    yield Sample("aten.cat.default", ([T((0,)), T((2, 3))], -1), FLOATS)
    yield Sample("aten.cat.default", ([T((2, 3)), T((2, 3), dtype=torch.float32)],), FLOATS)
    yield Sample("aten.stack.default", ([T((2, 3)), T((2, 3))],), EVERY)
    yield Sample("aten.stack.default", ([T((2, 3)), T((2, 3)), T((2, 3))], -1), FLOATS)
    yield Sample("aten.repeat.default", (T((2, 3)), [2, 1, 3]), EVERY)


def _cuts() -> Iterator[Sample]:
    for name in ("tril", "triu"):
        for diagonal in (0, 1, -2, 9):
            yield Sample(f"aten.{name}.default", (T((5, 7)), diagonal), EVERY)
        yield Sample(f"aten.{name}.default", (T((2, 4, 4)),), FLOATS)
        yield Sample(f"aten.{name}_.default", (T((5, 7), plain=True), 1), EVERY)
    for pad in ([1, 2], [0, 1, 2, 0], [-1, 2]):
        yield Sample("aten.constant_pad_nd.default", (T((3, 5)), pad, 2), NUMBERS)
    target = T((4, 6))
    yield Sample("aten.slice_scatter.default", (target, T((4, 2)), 1, 1, 5, 2), EVERY)
    yield Sample("aten.select_scatter.default", (target, T((4,)), 1, 3), EVERY)


def _made() -> Iterator[Sample]:
    for dtype in _MADE:
        kind = {"dtype": dtype}
        yield Sample("aten.full.default", ([3, 5], 1), (dtype,), kind)
        for name in ("zeros", "ones"):
            yield Sample(f"aten.{name}.default", ([3, 5],), (dtype,), kind)
    yield Sample("aten.full.default", ([2, 9], float("-inf")), FLOATS, {"dtype": torch.float32})
    yield Sample("aten.scalar_tensor.default", (2.5,), (torch.float32,))
    for dtype in (torch.int64, torch.int32, *FLOATS):
        kind = {"dtype": dtype}
        yield Sample("aten.arange.default", (17,), (dtype,), kind)
        yield Sample("aten.arange.start", (3, 40), (dtype,), kind)
        yield Sample("aten.arange.start_step", (2, 31, 3), (dtype,), kind)
    yield Sample("aten.arange.start_step", (1.0, 0.0, -0.125), (torch.float32,))
    for name, args in (("zeros", ()), ("ones", ()), ("full", (3,))):
        yield Sample(f"aten.{name}_like.default", (T(), *args), EVERY)
        yield Sample(f"aten.new_{name}.default", (T((2,)), [3, 4], *args), EVERY)
    yield Sample("aten.fill.Scalar", (T(), 1), EVERY)
    yield Sample("aten.fill.Tensor", (T(), T((), plain=True)), EVERY)
    yield Sample("aten.fill_.Scalar", (T(plain=True), 1), EVERY)
    yield Sample("aten.fill_.Tensor", (T(plain=True), T((), plain=True)), EVERY)
    yield Sample("aten.zero_.default", (T(plain=True),), EVERY)


SAMPLES = (*_copies(), *_reads(), *_joins(), *_cuts(), *_made())
