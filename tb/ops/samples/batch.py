# SPDX-License-Identifier: Apache-2.0
"""Samples of batch normalisation in training, and of its names without running statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tb.ops.samples.model import Sample, T

_SHAPES = ((4, 6), (3, 6, 7), (2, 6, 3, 5))
_AFFINE = (T((6,), plain=True), T((6,), plain=True))
_RUNNING = (T((6,), plain=True), T((6,), "positive", plain=True))


def _calls() -> Iterator[tuple[str, tuple[Any, ...]]]:
    tail = (0.1, 1e-5)
    for shape in _SHAPES:
        yield "native_batch_norm", (T(shape), *_AFFINE, *_RUNNING, True, *tail)
    x = T(_SHAPES[-1])
    for training in (True, False):
        moved = (x, *_AFFINE, *_RUNNING, training, *tail)
        yield "_native_batch_norm_legit", moved
        yield "_native_batch_norm_legit_functional", moved
    yield "native_batch_norm", (x, None, None, None, None, True, *tail)
    yield "native_batch_norm", (x, _AFFINE[0], None, *_RUNNING, True, 0.7, 1e-3)
    yield "_native_batch_norm_legit.no_stats", (x, *_AFFINE, True, *tail)
    yield "_batch_norm_with_update", (x, *_AFFINE, *_RUNNING, *tail)


def _samples() -> Iterator[Sample]:
    for name, args in _calls():
        full = name if "." in name else f"{name}.default"
        yield Sample(f"aten.{full}", args, special=False)


SAMPLES = tuple(_samples())
