# SPDX-License-Identifier: Apache-2.0
"""Ops whose results' sizes depend on values: the NPU counts first, the host reads the number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from driver.torch_device.shapes import ResultShape

Tensor = torch.Tensor
_MASKS = (torch.bool, torch.uint8)


def _nonzero(self: Tensor) -> ResultShape:
    count = int((self != 0).sum())
    return ResultShape((count, self.dim()), (max(self.dim(), 1), 1), torch.int64)


def _masked_select(self: Tensor, mask: Tensor) -> ResultShape:
    sizes = torch.broadcast_shapes(self.shape, mask.shape)  # type: ignore[no-untyped-call]
    return ResultShape((int(mask.expand(sizes).sum()),), (1,), self.dtype)


COUNTED: Mapping[str, Callable[..., ResultShape]] = {
    "aten.nonzero.default": _nonzero,
    "aten.masked_select.default": _masked_select,
}
"""Row → what its result looks like for these arguments."""

INDEXED = frozenset(
    f"aten.{name}"
    for name in ("index.Tensor", "index_put.default", "index_put_.default", "_unsafe_index.Tensor")
)
"""Rows that take masks as indices in torch, and places in the op table."""


def masks_as_places(args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of an op of INDEXED, each mask as the places where it is true.

    The same object when there is no mask.
    """
    self, indices, *rest = args
    if all(index is None or index.dtype not in _MASKS for index in indices):
        return args
    places: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype in _MASKS:
            at = len(places)
            if index.shape != self.shape[at : at + index.dim()]:
                raise IndexError(
                    f"The shape of the mask {list(index.shape)} at index {at} does not match the "
                    f"shape of the indexed tensor {list(self.shape)}"
                )
            places += index.nonzero().unbind(1)
        else:
            places.append(index)
    return self, places, *rest
