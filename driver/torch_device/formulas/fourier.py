# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms: products with the matrices of cosines and sines, dimension by dimension."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from driver.errors import UnsupportedOp
from driver.torch_device.formulas.complex_numbers import joined, parts

Tensor = torch.Tensor
Parts = tuple[Tensor, Tensor]

LONGEST = 4096
"""The matrices of a longer transform would take more than 128 MiB."""


def _waves(length: int, rows: int, columns: int, device: torch.device) -> Parts:
    """cos and sin of 2π·row·column ÷ length, [rows, columns]; the product is reduced exactly."""
    if length > LONGEST:
        raise UnsupportedOp("aten._fft_c2c.default", "dim", length, f"at most {LONGEST} elements")
    numbers = torch.arange(max(rows, columns), dtype=torch.int32, device=device)
    turns = (numbers[:rows, None] * numbers[None, :columns]) % length
    angles = turns.float() * (2 * math.pi / length)
    half = (turns * 2) % length == 0  # where the sine is 0
    return angles.cos(), torch.where(half, 0.0, angles.sin())


def _transform(x: Parts, dim: int, forward: bool) -> Parts:
    real, imag = (part.movedim(dim, -1) for part in x)
    size = real.shape[-1]
    cos, sin = _waves(size, size, size, real.device)
    if forward:
        sin = -sin
    found = real @ cos - imag @ sin, real @ sin + imag @ cos
    return found[0].movedim(-1, dim), found[1].movedim(-1, dim)


def _scale(sizes: Sequence[int], normalization: int) -> float:
    """What torch multiplies by: 1, 1 ÷ √count or 1 ÷ count."""
    count = math.prod(sizes)
    return (1.0, count**-0.5, 1.0 / count)[normalization]


def _scaled(x: Parts, scale: float) -> Parts:
    return x if scale == 1 else (x[0] * scale, x[1] * scale)


def fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """The transform of complex numbers along some dimensions."""
    if self.dtype is not torch.complex64:
        raise UnsupportedOp("aten._fft_c2c.default", "self", self.dtype, "complex64")
    found = parts(self)
    for one in dim:
        found = _transform(found, one, forward)
    return joined(*_scaled(found, _scale([self.shape[d] for d in dim], normalization)))


def fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """The transform of real numbers; onesided: only the first half of the last dimension."""
    if self.dtype is not torch.float32:
        raise UnsupportedOp("aten._fft_r2c.default", "self", self.dtype, "float32")
    *rest, last = dim
    x = self.movedim(last, -1)
    size = x.shape[-1]
    cos, sin = _waves(size, size, size // 2 + 1 if onesided else size, self.device)
    # The waves are negated, not the sum: where they are 0, so is it.
    found = (x @ cos).movedim(-1, last), (x @ torch.where(sin == 0, 0.0, -sin)).movedim(-1, last)
    for one in rest:
        found = _transform(found, one, True)
    return joined(*_scaled(found, _scale([self.shape[d] for d in dim], normalization)))


def fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """The backward transform of a half spectrum to real numbers."""
    if self.dtype is not torch.complex64:
        raise UnsupportedOp("aten._fft_c2r.default", "self", self.dtype, "complex64")
    found, (*rest, last) = parts(self), dim
    for one in rest:
        found = _transform(found, one, False)
    kept = last_dim_size // 2 + 1
    real, imag = (x.movedim(last, -1)[..., :kept] for x in found)
    cos, sin = _waves(last_dim_size, kept, last_dim_size, self.device)
    twice = torch.full((kept, 1), 2.0, device=self.device)
    twice[0] = 1.0
    if last_dim_size % 2 == 0:
        twice[-1] = 1.0
    made = (real @ (cos * twice) - imag @ (sin * twice)).movedim(-1, last)
    scale = _scale([*(self.shape[d] for d in rest), last_dim_size], normalization)
    return made if scale == 1 else made * scale


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten._fft_c2c.default": fft_c2c,
    "aten._fft_r2c.default": fft_r2c,
    "aten._fft_c2r.default": fft_c2r,
}
