# SPDX-License-Identifier: Apache-2.0
"""torch.amp.GradScaler on device "npu", which has no float64."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp import GradScaler

Tensor = torch.Tensor


class _NarrowScale(Tensor):
    """A scale whose float64 is itself.

    GradScaler takes the reciprocal of the scale in float64, since fp32 division is not rounded
    correctly on every device; the NPU's is (docs/numerics.md).
    """

    def double(self) -> Tensor:
        return self.as_subclass(Tensor)


def unscale_in_fp32() -> None:
    """Make `GradScaler.unscale_` take the reciprocal of a scale on the NPU in fp32."""
    unscale = GradScaler.unscale_

    def unscale_(self: GradScaler, optimizer: torch.optim.Optimizer) -> None:
        holder: Any = self
        scale = holder._scale
        if scale is None or scale.device.type != "npu":
            unscale(self, optimizer)
            return
        holder._scale = scale.as_subclass(_NarrowScale)
        try:
            unscale(self, optimizer)
        finally:
            holder._scale = scale

    unscale_.__doc__ = unscale.__doc__
    setattr(GradScaler, "unscale_", unscale_)  # noqa: B010 (mypy: a method is replaced)
