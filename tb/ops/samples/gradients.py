# SPDX-License-Identifier: Apache-2.0
"""Samples of gradients and of what optimizers do with them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import torch

from tb.ops.samples.model import FLOATS, Sample, T
from tb.ops.samples.nn import VOLUMES


def _activations() -> Iterator[Sample]:
    for name in ("tanh_backward", "sigmoid_backward"):
        yield Sample(f"aten.{name}.default", (T(), T(values="unit")))
    for threshold in (0, 0.7):
        yield Sample("aten.threshold_backward.default", (T(), T(), threshold))
    yield Sample("aten.silu_backward.default", (T(), T()))
    for approximate in ("none", "tanh"):
        kwargs = {"approximate": approximate}
        yield Sample("aten.gelu_backward.default", (T(), T()), kwargs=kwargs)


def _softmax() -> Iterator[Sample]:
    for name in ("_softmax_backward_data", "_log_softmax_backward_data"):
        for dtype in FLOATS:
            for dim in (-1, 0, 1):
                args = (T((4, 6, 33)), T((4, 6, 33), "unit"), dim, dtype)
                yield Sample(f"aten.{name}.default", args, (dtype,), special=False)


def _optimizers() -> Iterator[Sample]:
    place = T(plain=True)
    for weight in (0.1, 0.75, -3.0):
        yield Sample("aten.lerp.Scalar", (T(), T(), weight))
    yield Sample("aten.lerp_.Scalar", (place, T(), 0.25))
    for values in ("any", "unit"):
        yield Sample("aten.lerp.Tensor", (T(), T(), T(values=values)))
    yield Sample("aten.lerp_.Tensor", (place, T(), T(values="unit")))
    for value in (1, -0.001, 7.5):
        yield Sample("aten.addcdiv.default", (T(), T(), T()), kwargs={"value": value})
    yield Sample("aten.addcdiv_.default", (place, T(), T(values="positive")))
    yield Sample("aten.addcmul.default", (T(), T(), T()), kwargs={"value": -0.3})


_RATES = {"lr": 1e-2, "maximize": False}


def _descents() -> Iterator[Sample]:
    place, plain = T(plain=True), {"weight_decay": 0.0, **_RATES}
    decays = {"weight_decay": 0.1, "maximize": True}
    for options in (plain, plain | decays):
        yield Sample("npu.sgd_.default", (place, T()), kwargs=options)
    momentum = {"momentum": 0.9, "dampening": 0.0, "nesterov": False, "is_first_step": False}
    for changed in (
        {},
        {"nesterov": True} | decays,
        {"dampening": 0.3, "momentum": 0.5},
        {"is_first_step": True, "weight_decay": 0.1},
        {"is_first_step": True, "nesterov": True, "maximize": True},
    ):
        options = plain | momentum | changed
        yield Sample("npu.sgd_momentum_.default", (place, place, place), kwargs=options)


def _adams() -> Iterator[Sample]:
    place, square = T(plain=True), T(values="positive", plain=True)
    plain = {"beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8, "decoupled": True}
    step, late = T((), "positive", torch.float32), T((), "index", torch.float32, 20_000)
    for changed, when in (
        ({}, step),
        ({"decoupled": False, "maximize": True}, step),
        ({"decoupled": False, "weight_decay": 0.0, "beta1": 0.0}, late),
        ({"beta1": 0.4, "beta2": 0.9, "eps": 1e-3, "lr": 0.5}, late),
        ({"maximize": True, "lr": 0.0}, step),
    ):
        options = _RATES | plain | changed
        state = (place, place, place, square)
        yield Sample("npu.adam_.default", (*state, when), kwargs=options, special=False)
        largest = (*state, square, when)
        yield Sample("npu.amsgrad_.default", largest, kwargs=options, special=False)


def _scalers() -> Iterator[Sample]:
    found, scale = T((), "ties", torch.float32), T((), "positive", torch.float32)
    none = T((), "index", torch.float32, 1)
    for flag in (none, T((), "all set", torch.float32)):
        yield Sample("npu.unscale_.default", (T(plain=True), flag, scale))
    tracker = T((), "index", torch.int32, 1)
    for flag in (none, found):
        for interval in (1, 2):
            args = (scale, tracker, flag, 2.0, 0.5, interval)
            yield Sample("aten._amp_update_scale_.default", args, FLOATS[:1])
    args = (T((), "all set", torch.float32), tracker, none, 3.3e38, 0.3, 1)
    yield Sample("aten._amp_update_scale_.default", args, FLOATS[:1])


_ALL = [True, True, True]


def _batch_norms() -> Iterator[Sample]:
    name = "aten.native_batch_norm_backward.default"
    channel, spread = T((3,), plain=True), T((3,), "positive", plain=True)
    for shape in ((4, 3, 5, 6), (7, 3), (2, 3, 4, 2, 3)):
        x = T(shape)
        for train in (True, False):
            args = (x, x, spread, channel, spread, channel, spread, train, 1e-5, _ALL)
            yield Sample(name, args, special=False)
    x = T((4, 3, 33))
    for mask in (_ALL, [True, False, False], [False, True, True]):
        bare = (x, x, None, None, None, channel, spread, True, 1e-5, mask)
        yield Sample(name, bare, special=False)


def _layer_norms() -> Iterator[Sample]:
    name = "aten.native_layer_norm_backward.default"
    for inner in ((33,), (6, 33)):
        x, lead = T((4, 6, 33)), (4, 6, 33)[: 3 - len(inner)]
        sizes = (*lead, *[1] * len(inner))
        mean, rstd = T(sizes, plain=True), T(sizes, "positive", plain=True)
        weight, bias = T(inner, plain=True), T(inner, plain=True)
        yield Sample(name, (x, x, list(inner), mean, rstd, weight, bias, _ALL), special=False)
    args = (x, x, list(inner), mean, rstd, None, None, [True, False, False])
    yield Sample(name, args, special=False)
    none, row = T((0, 5), plain=True), T((5,), plain=True)
    empty = T((0, 1), plain=True)
    yield Sample(name, (none, none, [5], empty, empty, row, row, _ALL), special=False)


def _group_norms() -> Iterator[Sample]:
    name = "aten.native_group_norm_backward.default"
    for shape in ((2, 6, 5, 7), (3, 6, 4), (2, 6)):
        x, channel = T(shape, plain=True), T((6,), plain=True)
        sizes = (shape[0], 6, prod(shape[2:]), 3)
        mean, rstd = T((shape[0], 3), plain=True), T((shape[0], 3), "positive", plain=True)
        for weight, mask in ((channel, _ALL), (None, [True, False, False])):
            args = (x, x, mean, rstd, weight, *sizes, mask)
            yield Sample(name, args, special=False)


def _rms_norms() -> Iterator[Sample]:
    name = "aten._fused_rms_norm_backward.default"
    for inner in ((33,), (6, 33)):
        x, lead = T((4, 6, 33)), (4, 6, 33)[: 3 - len(inner)]
        rstd = T((*lead, *[1] * len(inner)), "positive", plain=True)
        for weight, mask in ((T(inner, plain=True), [True, True]), (None, [True, False])):
            yield Sample(name, (x, x, list(inner), rstd, weight, mask), special=False)


def _maxima() -> Iterator[Sample]:
    name = "aten.max_pool2d_with_indices_backward.default"
    for lead in ((2, 3), (3,)):
        x, grad = T((*lead, 9, 8), plain=True), T((*lead, 5, 4))
        places = T((*lead, 5, 4), "index", torch.int64, 72)
        args = (grad, x, [3, 3], [2, 2], [1, 1], [1, 1], False, places)
        yield Sample(name, args, special=False)
        yield Sample("aten.adaptive_max_pool2d_backward.default", (grad, x, places), special=False)
    x, grad = T((2, 3, 4, 5, 6), plain=True), T((2, 3, 2, 2, 3))
    places = T((2, 3, 2, 2, 3), "index", torch.int64, 120, plain=True)  # torch reads them so
    args = (grad, x, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False, places)
    yield Sample("aten.max_pool3d_with_indices_backward.default", args, special=False)
    yield Sample("aten.adaptive_max_pool3d_backward.default", (grad, x, places), special=False)


_MEANS: tuple[tuple[tuple[int, int], tuple[Any, ...]], ...] = (
    ((4, 4), ([2, 2], [2, 2], [0, 0], False, True, None)),
    ((4, 4), ([2, 2], [], [0, 0], False, True, 3)),
    ((5, 4), ([3, 3], [2, 2], [1, 1], False, True, None)),
    ((5, 4), ([3], [2], [1], False, False, None)),
    ((5, 4), ([2, 2], [2, 2], [0, 0], True, True, None)),
    ((4, 7), ([3, 2], [2, 1], [0, 0], False, True, -5)),
)
"""Windows, and the arguments behind the image of 9 × 8."""


def _means() -> Iterator[Sample]:
    for positions, tail in _MEANS:
        for lead in ((2, 3), (3,)):
            args = (T((*lead, *positions)), T((*lead, 9, 8), plain=True), *tail)
            yield Sample("aten.avg_pool2d_backward.default", args)
    for positions in ((3, 4), (4, 5), (1, 1), (2, 9)):
        args = (T((2, 3, *positions)), T((2, 3, 9, 8), plain=True))
        yield Sample("aten._adaptive_avg_pool2d_backward.default", args)
    x = T((1, 2, 6, 5, 7), plain=True)
    for volumes, tail in (
        ((3, 2, 3), ([2] * 3, [2] * 3, [0] * 3, False, True, None)),
        ((3, 3, 4), ([3, 2, 2], [2] * 3, [1, 1, 1], False, False, None)),
    ):
        args = (T((1, 2, *volumes)), x, *tail)
        yield Sample("aten.avg_pool3d_backward.default", args, VOLUMES)
    for volumes in ((3, 5, 1), (4, 2, 3)):
        args = (T((1, 2, *volumes)), x)
        yield Sample("aten._adaptive_avg_pool3d_backward.default", args, VOLUMES)


_CONVOLUTIONS: tuple[
    tuple[tuple[int, ...], tuple[int, ...], list[int], list[int], list[int], int], ...
] = (
    ((2, 3, 9, 8), (4, 3, 3, 3), [1, 1], [0, 0], [1, 1], 1),
    ((2, 3, 9, 8), (4, 3, 3, 2), [2, 1], [1, 1], [1, 1], 1),
    ((1, 4, 9, 9), (6, 2, 3, 3), [1, 1], [1, 1], [2, 2], 2),
    ((2, 4, 6, 6), (4, 1, 3, 3), [1, 1], [1, 1], [1, 1], 4),
    ((3, 3, 5, 7), (5, 3, 1, 1), [2, 2], [0, 0], [1, 1], 1),
    ((2, 3, 6, 7), (5, 3, 4, 4), [4, 4], [0, 0], [1, 1], 1),
    ((2, 3, 12), (4, 3, 5), [2], [2], [1], 1),
    ((2, 2, 4, 5, 3), (3, 2, 2, 3, 2), [1, 1, 1], [0, 1, 1], [1, 1, 1], 1),
)
"""Input, weight, stride, padding, dilation, groups."""


def _convolutions() -> Iterator[Sample]:
    name = "aten.convolution_backward.default"
    for x, w, stride, padding, dilation, groups in _CONVOLUTIONS:
        dims = range(len(stride))
        tail = (stride, padding, dilation, False, [0 for _ in dims], groups)
        positions = [
            (x[2 + at] + 2 * padding[at] - dilation[at] * (w[2 + at] - 1) - 1) // stride[at] + 1
            for at in dims
        ]
        grad = T((x[0], w[0], *positions))
        args = (grad, T(x), T(w, plain=True), [w[0]], *tail)
        yield Sample(name, (*args, _ALL), special=False)
    for mask in ([True, False, False], [False, True, False], [False, False, True]):
        yield Sample(name, (*args, mask), special=False)
    for extra in (0, 1):
        tail = ([2, 3], [1, 1], [1, 2], True, [extra, extra], 2)
        grad = T((2, 6, 2 * 3 - 2 + 2 + 1 + extra, 3 * 2 - 2 + 4 + 1 + extra))
        transposed = (grad, T((2, 4, 4, 3)), T((4, 3, 3, 3), plain=True), [6], *tail, _ALL)
        yield Sample(name, transposed, special=False)


SAMPLES = (
    *_convolutions(),
    *_maxima(),
    *_means(),
    *_batch_norms(),
    *_layer_norms(),
    *_group_norms(),
    *_rms_norms(),
    *_optimizers(),
    *_descents(),
    *_adams(),
    *_scalers(),
    *_activations(),
    *_softmax(),
)
