# SPDX-License-Identifier: Apache-2.0
"""Samples of losses, with every reduction."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import Sample, T

_INDEX = torch.int64
_SHAPE = (3, 21)


def _pairs() -> Iterator[Sample]:
    x, t = T(_SHAPE), T(_SHAPE)
    for reduction in (0, 1, 2):
        yield Sample("aten.mse_loss.default", (x, t, reduction))
        yield Sample("aten.soft_margin_loss.default", (x, t, reduction), special=False)
        yield Sample("aten.smooth_l1_loss.default", (x, t, reduction, 1.0))
        yield Sample("aten.smooth_l1_loss.default", (x, t, reduction, 0.3), special=False)
        yield Sample("aten.huber_loss.default", (x, t, reduction, 0.7))
    yield Sample("aten.smooth_l1_loss.default", (x, t, 0, 0.0), special=False)
    yield Sample("aten.mse_loss.default", (T((4, 5, 3)), T((4, 5, 3))))


def _probabilities() -> Iterator[Sample]:
    p, t, logits = T(_SHAPE, "unit"), T(_SHAPE, "unit"), T(_SHAPE)
    row = T((21,), "positive")
    for reduction in (0, 1, 2):
        name = "aten.binary_cross_entropy.default"
        yield Sample(name, (p, t, None, reduction), special=False)
        yield Sample(name, (p, t, T(_SHAPE), reduction), special=False)
        name = "aten.binary_cross_entropy_with_logits.default"
        yield Sample(name, (logits, t, None, None, reduction), special=False)
        yield Sample(name, (logits, t, row, row, reduction), special=False)


def _classes() -> Iterator[Sample]:
    rows = (T((6, 5)), T((6,), "index", _INDEX, 5, plain=True))
    image = (T((2, 5, 3, 4)), T((2, 3, 4), "index", _INDEX, 5, plain=True))
    one = (T((5,)), T((), "index", _INDEX, 5, plain=True))
    for reduction in (0, 1, 2):
        for weight in (None, T((5,), "positive", plain=True)):
            for ignored in (-100, 3):
                tail = (weight, reduction, ignored)
                yield Sample("aten.nll_loss_forward.default", (*rows, *tail), special=False)
                yield Sample("aten.nll_loss2d_forward.default", (*image, *tail), special=False)
        yield Sample("aten.nll_loss_forward.default", (*one, None, reduction, -100), special=False)


def _gradients_of_classes() -> Iterator[Sample]:
    line, image = T((6,), "index", _INDEX, 5, plain=True), T((2, 3, 4), "index", _INDEX, 5)
    for reduction in (0, 1, 2):
        for weight in (None, T((5,), "positive", plain=True)):
            for ignored in (-100, 3):
                total = T((), "positive", plain=True)
                tail = (weight, reduction, ignored, total)
                grad = T(() if reduction else (6,))
                args = (grad, T((6, 5), plain=True), line, *tail)
                yield Sample("aten.nll_loss_backward.default", args)
                grad = T(() if reduction else (2, 3, 4))
                args = (grad, T((2, 5, 3, 4), plain=True), image, *tail)
                yield Sample("aten.nll_loss2d_backward.default", args)
        one = (T(()), T((5,), plain=True), T((), "index", _INDEX, 5, plain=True))
        args = (*one, None, reduction, -100, T((), "positive", plain=True))
        yield Sample("aten.nll_loss_backward.default", args)


SAMPLES = (*_gradients_of_classes(), *_pairs(), *_probabilities(), *_classes())
