# SPDX-License-Identifier: Apache-2.0
"""Samples of an image at the places of a grid: the nearest element, or the mean of the neighbours.

What lies outside the image is left out of a sum, not multiplied by 0: an infinity of the image
stays where it is. NaN in the grid is NaN where the outside is 0, else the first place, as on the
CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import torch

Tensor = torch.Tensor
_BILINEAR, _NEAREST = 0, 1
_ZEROS, _REFLECTION = 0, 2
"""1 is the border: the nearest element of the image."""


def grid_sampler_2d(
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """[N, C, H, W] at [N, h, w, 2] → [N, C, h, w]; cubic means as torch defines them. Places are
    computed in the grid's type, which decides about the nearest one."""
    if interpolation_mode not in (_BILINEAR, _NEAREST):
        cubic = torch._decomp.decompositions.grid_sampler_2d
        options = interpolation_mode, padding_mode, align_corners
        return cast("Tensor", cubic(input.float(), grid.float(), *options)).to(input.dtype)
    image = input.float()
    places = [
        _place(grid[..., at], size, padding_mode, align_corners).float()
        for at, size in ((1, image.shape[2]), (0, image.shape[3]))
    ]
    if interpolation_mode == _NEAREST:
        found = _element(image, *(place.round() for place in places))
        found = torch.where((places[0] + places[1]).isnan()[:, None], 0.0, found)
        return found.to(input.dtype)
    total: Tensor | None = None
    for corner in product((0, 1), repeat=2):
        weight: Tensor | float = 1.0
        lower = [place.floor() for place in places]
        for place, low, side in zip(places, lower, corner, strict=True):
            weight = weight * (place - low if side else low + 1 - place)
        at = [low + side for low, side in zip(lower, corner, strict=True)]
        part = _element(image, *at) * cast("Tensor", weight)[:, None]
        total = part if total is None else total + part
    assert total is not None
    return total.to(input.dtype)


def _place(x: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    """−1 to 1 → 0 to the last element, or its outer edges; outside as the padding has it."""
    place = (x + 1) * ((size - 1) / 2) if align_corners else ((x + 1) * size - 1) / 2
    if padding_mode == _ZEROS:
        return place
    if padding_mode == _REFLECTION:
        place = _reflected(place, size, align_corners)
    return torch.where(place.isnan(), 0.0, place).clamp(0, size - 1)


def _reflected(place: Tensor, size: int, align_corners: bool) -> Tensor:
    """Mirrored at the first and the last element, or at their outer edges, as often as needed."""
    first, span = (0.0, size - 1) if align_corners else (-0.5, size)
    if not span:
        return torch.zeros_like(place)
    away = (place - first).abs()
    rest = away - (away / (2 * span)).trunc() * (2 * span)  # there and back
    return torch.minimum(rest, 2 * span - rest) + first


def _element(image: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """The elements at these whole numbers, [N, C, h, w]; 0 outside the image."""
    rows, columns = image.shape[2:]
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    first, second = (torch.where(inside, x, 0.0).long() for x in (row, column))
    flat = first * columns + second
    count, channels = image.shape[:2]
    sizes = (count, channels, flat[0].numel())
    numbers = flat.reshape(count, 1, -1).expand(sizes)
    found = image.reshape(count, channels, rows * columns).gather(2, numbers)
    return torch.where(inside[:, None], found.reshape(count, channels, *row.shape[1:]), 0.0)


DEFINITIONS: dict[str, Callable[..., Any]] = {"aten.grid_sampler_2d.default": grid_sampler_2d}
