# SPDX-License-Identifier: Apache-2.0
"""Ops whose results' sizes depend on values: the NPU counts first, the host reads the number."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from driver.torch_device.shapes import ResultShape

Tensor = torch.Tensor


def _nonzero(self: Tensor) -> ResultShape:
    count = int((self != 0).sum())
    return ResultShape((count, self.dim()), (1, count), torch.int64)


def _masked_select(self: Tensor, mask: Tensor) -> ResultShape:
    sizes = torch.broadcast_shapes(self.shape, mask.shape)
    return ResultShape((int(mask.expand(sizes).sum()),), (1,), self.dtype)


DATA_DEPENDENT: Mapping[str, Callable[..., ResultShape]] = {
    "aten.nonzero.default": _nonzero,
    "aten.masked_select.default": _masked_select,
}
"""Row → what its result looks like for these arguments."""
