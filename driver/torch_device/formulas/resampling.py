# SPDX-License-Identifier: Apache-2.0
"""Gradients of resampling and of padding by an image's own elements.

Both are linear and act on each dimension alone. The matrix of a dimension is what the forward op
makes of the unit matrix; the gradient is multiplied by it, dimension by dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch

Tensor = torch.Tensor
Scale = float | None
Forward = Callable[[Tensor, int, Scale], Tensor]
"""([n, 1, n], the size of the result, the scale) → [n, 1, size]."""

aten = torch.ops.aten


def _along(grad: Tensor, dim: int, matrix: Tensor) -> Tensor:
    """The gradient along a dimension, times [size of the result, size of the input]."""
    return (grad.movedim(dim, -1) @ matrix).movedim(-1, dim)


def _unit(size: int, like: Tensor) -> Tensor:
    return torch.eye(size, dtype=torch.float32, device=like.device).unsqueeze(1)


def _nearest(exact: bool, unit: Tensor, size: int, scale: Scale) -> Tensor:
    op = aten._upsample_nearest_exact1d if exact else aten.upsample_nearest1d
    found: Tensor = op(unit, [size], scale)
    return found


def _linear(align_corners: bool, unit: Tensor, size: int, scale: Scale) -> Tensor:
    found: Tensor = aten.upsample_linear1d(unit, [size], align_corners, scale)
    return found


def _cubic(align_corners: bool, unit: Tensor, size: int, scale: Scale) -> Tensor:
    square = unit.unsqueeze(-1)
    found: Tensor = aten.upsample_bicubic2d(square, [size, 1], align_corners, scale, None)
    return found.squeeze(-1)


def _antialiased(align_corners: bool, unit: Tensor, size: int, scale: Scale) -> Tensor:
    """Triangles of the width of a step of the result, their sums scaled to 1."""
    count = unit.shape[0]
    if align_corners:
        step = (count - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = 1 / scale if scale else count / size
    width = max(step, 1.0)
    own = torch.arange(count, dtype=torch.float32, device=unit.device) + 0.5
    centres = (torch.arange(size, dtype=torch.float32, device=unit.device) + 0.5) * step
    weights = (1 - (own[:, None] - centres[None, :]).abs() * (1 / width)).clamp(min=0)
    return (weights / weights.sum(0, keepdim=True)).unsqueeze(1)


def _upsample_backward(
    forward: Forward,
    grad_output: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    scales: Sequence[Scale],
) -> Tensor:
    found = grad_output.float()
    for at, (size, count) in enumerate(zip(output_size, input_size[2:], strict=True)):
        scale = scales[at] if scales else None
        matrix = forward(_unit(count, grad_output), size, scale).squeeze(1)
        found = _along(found, at + 2, matrix.transpose(0, 1))
    return found.to(grad_output.dtype)


def nearest_backward(
    exact: bool,
    grad_output: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    *scales: Scale,
    **named: Scale,
) -> Tensor:
    """Of upsample_nearest in one to three dimensions."""
    forward = partial(_nearest, exact)
    given = [*scales, *named.values()]
    return _upsample_backward(forward, grad_output, output_size, input_size, given)


def weighted_backward(
    kind: Callable[..., Tensor],
    grad_output: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    align_corners: bool,
    *scales: Scale,
    **named: Scale,
) -> Tensor:
    """Of linear and cubic upsampling."""
    forward = partial(kind, align_corners)
    given = [*scales, *named.values()]
    return _upsample_backward(forward, grad_output, output_size, input_size, given)


def bilinear_antialiased(
    self: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: Scale = None,
    scales_w: Scale = None,
) -> Tensor:
    """Resampling of an image by triangles, which average where it shrinks; NotImplemented for
    integers, which torch resamples in fixed point."""
    if not self.is_floating_point():
        return cast("Tensor", NotImplemented)
    found = self.float()
    for at, (size, scale) in enumerate(zip(output_size, (scales_h, scales_w), strict=True)):
        unit = _unit(self.shape[at + 2], self)
        matrix = _antialiased(align_corners, unit, size, scale).squeeze(1)
        found = _along(found, at + 2, matrix)
    return found.to(self.dtype)


def replication_pad_backward(
    dims: int, grad_output: Tensor, self: Tensor, padding: Sequence[int]
) -> Tensor:
    """Each element of the border adds to the gradient of the element that it repeats."""
    found = grad_output.float()
    for at in range(dims):
        pair = padding[2 * at : 2 * at + 2]
        unit = _unit(self.shape[-1 - at], self)
        matrix: Tensor = aten.replication_pad1d(unit, list(pair)).squeeze(1)
        found = _along(found, found.dim() - 1 - at, matrix.transpose(0, 1))
    return found.to(grad_output.dtype)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    **{
        f"aten.upsample_nearest{dims}d_backward.default": partial(nearest_backward, False)
        for dims in (1, 2, 3)
    },
    **{
        f"aten._upsample_nearest_exact{dims}d_backward.default": partial(nearest_backward, True)
        for dims in (1, 2, 3)
    },
    "aten.upsample_linear1d_backward.default": partial(weighted_backward, _linear),
    "aten.upsample_bilinear2d_backward.default": partial(weighted_backward, _linear),
    "aten.upsample_trilinear3d_backward.default": partial(weighted_backward, _linear),
    "aten.upsample_bicubic2d_backward.default": partial(weighted_backward, _cubic),
    "aten._upsample_bilinear2d_aa.default": bilinear_antialiased,
    "aten._upsample_bilinear2d_aa_backward.default": partial(weighted_backward, _antialiased),
    **{
        f"aten.replication_pad{dims}d_backward.default": partial(replication_pad_backward, dims)
        for dims in (1, 2, 3)
    },
}
