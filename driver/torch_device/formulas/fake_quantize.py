# SPDX-License-Identifier: Apache-2.0
"""Fake quantization, for training that foresees integers: elements moved to the grid of a scale and
a zero point, and which of them were inside its range, where their gradient passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor


def _on_grid(
    x: Tensor, scale: Tensor, zero_point: Tensor, limits: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """The product with the reciprocal of the scale, as torch has it, not the quotient."""
    places = torch.round(x.float() * scale.float().reciprocal()) + zero_point.float()
    # torch makes the least integer of NaN
    places = torch.where(places.isnan(), limits[0] - 1, places)
    inside = (places >= limits[0]) & (places <= limits[1])
    made = (places.clamp(*limits) - zero_point.float()) * scale.float()
    return made.to(x.dtype), inside


def per_tensor(
    self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """One grid, of numbers."""
    step, origin = (torch.tensor(float(x), device=self.device) for x in (scale, zero_point))
    return _on_grid(self, step, origin, (quant_min, quant_max))


def per_tensor_of_tensors(
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    fake_quant_enabled: Tensor,
    quant_min: int,
    quant_max: int,
) -> tuple[Tensor, Tensor]:
    """One grid, which an observer has measured; the host reads whether it is in use."""
    if not fake_quant_enabled.item():
        return self.clone(), torch.ones_like(self, dtype=torch.bool)
    return _on_grid(self, scale, zero_point, (quant_min, quant_max))


def per_channel(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor]:
    """A grid for each position of a dimension."""
    sizes = [1] * self.dim()
    sizes[axis] = self.shape[axis]
    steps, origins = (tensor.reshape(sizes) for tensor in (scale, zero_point))
    return _on_grid(self, steps, origins, (quant_min, quant_max))


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.fake_quantize_per_tensor_affine_cachemask.default": per_tensor,
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": per_tensor_of_tensors,
    "aten.fake_quantize_per_channel_affine_cachemask.default": per_channel,
}
"""Op → its formula, with the op's arguments."""
