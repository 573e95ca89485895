# SPDX-License-Identifier: Apache-2.0
"""Random numbers of further distributions, from the rows that draw uniform and normal ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
Generator = torch.Generator | None


def _uniform(like: Tensor, generator: Generator) -> Tensor:
    """In (0, 1) in fp32: multiples of 2⁻²⁴, and half of one instead of 0."""
    drawn = torch.empty_like(like, dtype=torch.float32).uniform_(generator=generator)
    return drawn.clamp(min=2.0**-25)


def cauchy_(
    self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator = None
) -> Tensor:
    """The tangent of a uniform angle."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    angle = (_uniform(self, generator) - 0.5) * math.pi
    return self.copy_(angle.tan() * sigma + median)


def geometric_(self: Tensor, p: float, *, generator: Generator = None) -> Tensor:
    """How many trials until the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    drawn = _uniform(self, generator).log() * (1 / math.log1p(-p))
    return self.copy_(drawn.ceil().clamp(min=1))


def log_normal_(
    self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator = None
) -> Tensor:
    """e to the power of a normal number."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    drawn = torch.empty_like(self, dtype=torch.float32).normal_(mean, std, generator=generator)
    return self.copy_(drawn.exp())


def rrelu_with_noise(
    self: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator = None,
) -> Tensor:
    """Leaky ReLU with a random slope below 0 in training; `noise` takes the slopes."""
    if not training:
        return torch.nn.functional.leaky_relu(self, (lower + upper) / 2)
    drawn = torch.empty_like(noise).uniform_(lower, upper, generator=generator)
    noise.copy_(torch.where(self <= 0, drawn, 1.0))
    return self * noise


def rrelu_with_noise_(
    self: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Generator = None,
) -> Tensor:
    """The same in place."""
    return self.copy_(rrelu_with_noise(self, noise, lower, upper, training, generator))


def dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """grad·mask·scale, for integers and for masks that are numbers."""
    return grad_output * (mask.to(grad_output.dtype) * scale)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.cauchy_.default": cauchy_,
    "aten.geometric_.default": geometric_,
    "aten.log_normal_.default": log_normal_,
    "aten.native_dropout_backward.default": dropout_backward,
    "aten.rrelu_with_noise.default": rrelu_with_noise,
    "aten.rrelu_with_noise_.default": rrelu_with_noise_,
}
