# SPDX-License-Identifier: Apache-2.0
"""Samples of activations of several passes, of their gradients, and of gradients of losses of
pairs."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from tb.ops.samples.model import Sample, T

_PLACE = T(plain=True)
_CHANNELS = T((1, 3, 1))


def _pieces() -> Iterator[Sample]:
    yield Sample("aten.leaky_relu.default", (T(),))
    yield Sample("aten.leaky_relu_.default", (_PLACE, 0.3))
    for slope in (0.01, 2.0):
        yield Sample("aten.leaky_relu_backward.default", (T(), T(), slope, False))
    x = T((2, 3, 5))
    yield Sample("aten._prelu_kernel.default", (x, _CHANNELS))
    yield Sample("aten._prelu_kernel_backward.default", (T((2, 3, 5)), x, _CHANNELS))
    for numbers in ((1, 1, 1), (0.7, 1.05, 1.3)):
        yield Sample("aten.elu.default", (T(), *numbers))
        yield Sample("aten.elu_.default", (_PLACE, *numbers))
        for is_result in (False, True):
            args = (T(), *numbers, is_result, T())
            yield Sample("aten.elu_backward.default", args, special=False)
    yield Sample("aten.hardtanh_backward.default", (T(), T(), -1, 1))
    yield Sample("aten.hardtanh_backward.default", (T(), T(), 0.25, 1.5))
    yield Sample("aten.hardsigmoid_backward.default", (T(), T()))
    yield Sample("aten.hardswish.default", (T(),), special=False)
    yield Sample("aten.hardswish_.default", (_PLACE,), special=False)
    yield Sample("aten.hardswish_backward.default", (T(), T()), special=False)


def _gates() -> Iterator[Sample]:
    for beta, threshold in ((1, 20), (2.5, 3.0)):
        args = (T(), T(), beta, threshold)
        yield Sample("aten.softplus_backward.default", args, special=False)
    yield Sample("aten.log_sigmoid_forward.default", (T(),), special=False)
    gate = (T(), T(), T(values="unit"))
    yield Sample("aten.log_sigmoid_backward.default", gate, special=False)
    for dim in (-1, 1):
        x = T((4, 6, 10))
        yield Sample("aten.glu.default", (x, dim), special=False)
        grad = T((4, 6, 5) if dim == -1 else (4, 3, 10))
        yield Sample("aten.glu_backward.default", (grad, x, dim), special=False)
    mask = T(dtype=torch.bool)
    yield Sample("aten.native_dropout_backward.default", (T(), mask, 1.25))


def _pairs() -> Iterator[Sample]:
    x, chance = T((3, 21)), T((3, 21), "chance")
    for reduction in (0, 1, 2):
        grad = T(() if reduction else (3, 21))
        pair = (grad, x, x, reduction)
        yield Sample("aten.mse_loss_backward.default", pair, special=False)
        for limit in (1.0, 0.3):
            yield Sample("aten.smooth_l1_loss_backward.default", (*pair, limit), special=False)
            yield Sample("aten.huber_loss_backward.default", (*pair, limit), special=False)
        for weight in (None, T((3, 21), "positive")):
            args = (grad, chance, chance, weight, reduction)
            name = "aten.binary_cross_entropy_backward.default"
            yield Sample(name, args, (torch.float32,), special=False)
    yield Sample("aten.smooth_l1_loss_backward.default", (x, x, x, 0, 0.0), special=False)


SAMPLES = (*_pieces(), *_gates(), *_pairs())
