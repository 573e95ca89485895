# SPDX-License-Identifier: Apache-2.0
"""Samples of gradients and of what optimizers do with them."""

from __future__ import annotations

from collections.abc import Iterator

from tb.ops.samples.model import FLOATS, Sample, T


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


SAMPLES = (*_optimizers(), *_activations(), *_softmax())
