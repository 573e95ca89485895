# SPDX-License-Identifier: Apache-2.0
"""Samples of reductions, scans, softmax and normalisations."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import torch

from tb.ops.samples.model import BOOL, EVERY, FLOATS, NUMBERS, Sample, T

_SUMMED = (*FLOATS, torch.int32, torch.int64, torch.int8, torch.uint8, *BOOL)
_SCANNED = (*FLOATS, torch.int32, torch.int64, torch.int8, *BOOL)
_DIMS: tuple[tuple[tuple[int, ...], object, bool], ...] = (
    ((3, 21), [1], False),
    ((3, 21), [0], True),
    ((2, 3, 17), [0, 2], False),
    ((4, 33), [-1], True),
    ((1, 1), [1], False),
    ((16,), [0], False),
    ((), [0], False),
    ((2, 4900), [1], False),
)
"""Shape, dimensions, keepdim."""
_FEW = 16
_EMPTY_SUMS = (((0, 5), [0], False), ((3, 0), [1], True), ((0, 4), [1], False))


def _has_bounds(shape: tuple[int, ...]) -> bool:
    """With special values as well: of a few, the only sum may be one that overflows in some order,
    and then nothing is compared."""
    return prod(shape) > _FEW


def _sums() -> Iterator[Sample]:
    yield Sample("aten.sum.default", (T(),), _SUMMED)
    yield Sample("aten.mean.default", (T(),), FLOATS)
    for shape, dims, keep in (*_DIMS, *_EMPTY_SUMS):
        types = _SUMMED if shape == (3, 21) else FLOATS
        special = _has_bounds(shape)
        yield Sample("aten.sum.dim_IntList", (T(shape), dims, keep), types, special=special)
        yield Sample("aten.mean.dim", (T(shape), dims, keep), FLOATS, special=special)
    for name in ("var", "std"):
        for shape, dims, keep in _DIMS:
            for correction in (0, 1):
                args, kwargs = (T(shape), dims), {"correction": correction, "keepdim": keep}
                special = _has_bounds(shape)
                yield Sample(f"aten.{name}.correction", args, FLOATS, kwargs, special=special)
        whole = {"correction": 1}
        yield Sample(f"aten.{name}.correction", (T((5, 7)),), FLOATS, whole, special=False)


def _extremes() -> Iterator[Sample]:
    for name in ("amax", "amin"):
        for shape, dims, keep in _DIMS:
            types = (*NUMBERS, *BOOL) if shape == (3, 21) else FLOATS
            yield Sample(f"aten.{name}.default", (T(shape), dims, keep), types)
    for name in ("max", "min"):
        yield Sample(f"aten.{name}.default", (T((5, 19)),), NUMBERS)
        for values in ("any", "ties"):
            yield Sample(f"aten.{name}.dim", (T((4, 19), values), 1), NUMBERS)
            yield Sample(f"aten.{name}.dim", (T((5, 3), values), 0, True), FLOATS)
    for name in ("argmax", "argmin"):
        for values in ("any", "ties"):
            yield Sample(f"aten.{name}.default", (T((4, 19), values), 1), NUMBERS)
            yield Sample(f"aten.{name}.default", (T((4, 19), values), 0, True), FLOATS)
            yield Sample(f"aten.{name}.default", (T((3, 2, 9), values),), FLOATS)
        yield Sample(f"aten.{name}.default", (T(()),), FLOATS)


def _truth() -> Iterator[Sample]:
    for name in ("any", "all"):
        for values in ("ties", "all set", "none set"):
            yield Sample(f"aten.{name}.default", (T((3, 7), values),), EVERY)
        yield Sample(f"aten.{name}.dim", (T((3, 7), "ties"), 1), EVERY)
        yield Sample(f"aten.{name}.dim", (T((3, 7), "ties"), 0, True), EVERY)
        yield Sample(f"aten.{name}.dims", (T((3, 7, 2), "ties"), [0, 2]), EVERY)
    for values in ("all set", "ties"):  # equal as bytes, and hardly ever
        pair = (T((3, 7), values, torch.uint8), T((3, 7), values, torch.uint8))
        yield Sample("aten.equal.default", pair, (torch.uint8,))


def _scans() -> Iterator[Sample]:
    for shape, dim in (((3, 21), 1), ((5, 4), 0), ((2, 3, 17), 1), ((1,), 0), ((), 0), ((0, 3), 0)):
        types = _SCANNED if shape == (3, 21) else FLOATS
        special = _has_bounds(shape)
        yield Sample("aten.cumsum.default", (T(shape), dim), types, special=special)
    yield Sample("aten.cumsum_.default", (T((3, 9), plain=True), 1))


def _softmax() -> Iterator[Sample]:
    for name in ("_softmax", "_log_softmax"):
        for shape, dim in (((3, 21), -1), ((5, 4), 0), ((2, 7, 6), 1), ((2, 300), 1), ((1,), 0)):
            yield Sample(f"aten.{name}.default", (T(shape), dim, False))
        yield Sample(f"aten.{name}.default", (T((0, 5)), 1, False))
        yield Sample(f"aten.{name}.default", (T(()), 0, False))
    yield Sample("aten._safe_softmax.default", (T((3, 21)), -1))


def _norms() -> Iterator[Sample]:
    weight, bias = T((24,), plain=True), T((24,), plain=True)
    eps = 1e-5
    for shape in ((5, 24), (2, 3, 24), (24,)):
        for given in ((weight, bias), (weight, None), (None, None)):
            args = (T(shape), [24], *given, eps)
            yield Sample("aten.native_layer_norm.default", args, special=False)
    wide = (T((4, 3, 8)), [3, 8], T((3, 8), plain=True), T((3, 8), plain=True), eps)
    yield Sample("aten.native_layer_norm.default", wide, special=False)
    small = (T((5, 24), "small"), [24], weight, bias, eps)
    yield Sample("aten.native_layer_norm.default", small, special=False)
    for scale, values in ((weight, "any"), (None, "any"), (weight, "small")):
        args = (T((5, 24), values), [24], scale, 1e-6)
        yield Sample("aten.rms_norm.default", args, special=False)
        yield Sample("aten._fused_rms_norm.default", args, special=False)
    yield from _batch_norms()


def _batch_norms() -> Iterator[Sample]:
    channels = [T((6,), plain=True), T((6,), plain=True), T((6,), plain=True)]
    spread = T((6,), "positive", plain=True)
    for shape in ((4, 6), (2, 6, 9), (2, 6, 3, 5)):
        args = (T(shape), *channels, spread, 0.1, 1e-5)
        yield Sample("aten._native_batch_norm_legit_no_training.default", args, special=False)
        still = (T(shape), *channels, spread, False, 0.1, 1e-5)
        yield Sample("aten.native_batch_norm.default", still, special=False)
    group = (
        T((2, 6, 3, 5), plain=True),
        T((6,), plain=True),
        T((6,), plain=True),
        2,
        6,
        15,
        3,
        1e-5,
    )
    yield Sample("aten.native_group_norm.default", group, special=False)


def _vector_norms() -> Iterator[Sample]:
    name, inf = "aten.linalg_vector_norm.default", float("inf")
    for shape, dims, keep in (*_DIMS, *_EMPTY_SUMS):
        for usual in (2, 1):
            yield Sample(name, (T(shape), usual, dims, keep), special=_has_bounds(shape))
    for order in (2, 1, inf, -inf, 0, 3, 0.5, -1.5):
        yield Sample(name, (T((6, 21)), order, [1]))
        yield Sample(name, (T((2, 3, 17)), order), special=False)
    yield Sample(name, (T((3, 21)),), kwargs={"dtype": torch.float32}, special=False)


SAMPLES = (*_vector_norms(), *_sums(), *_extremes(), *_truth(), *_scans(), *_softmax(), *_norms())
