# SPDX-License-Identifier: Apache-2.0
"""Indices as torch takes them, made into those of the op table: places, on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Tensor = torch.Tensor
MASKS = (torch.bool, torch.uint8)

INDEXED = frozenset(
    f"aten.{name}"
    for name in ("index.Tensor", "index_put.default", "index_put_.default", "_unsafe_index.Tensor")
)
"""Rows that take masks as indices in torch, and places in the op table."""


def indices_on_the_device(args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of an op of INDEXED, indices on the CPU brought to the device of `self`, as
    torch allows them there. The same object when there is none."""
    self, indices, *rest = args
    if all(index is None or index.device == self.device for index in indices):
        return args
    moved = [
        index.to(self.device) if index is not None and index.device.type == "cpu" else index
        for index in indices
    ]
    return self, moved, *rest


CLASSES = frozenset(
    f"aten.{name}.default"
    for name in (
        *("nll_loss_forward", "nll_loss_backward"),
        *("nll_loss2d_forward", "nll_loss2d_backward"),
    )
)
"""Rows that take classes in uint8 in torch."""


def classes_as_places(args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of an op of CLASSES, those in uint8 as int64."""
    return [x.long() if isinstance(x, Tensor) and x.dtype is torch.uint8 else x for x in args]


def masks_as_places(args: Sequence[Any]) -> Sequence[Any]:
    """The arguments of an op of INDEXED, each mask as the places where it is true.

    The same object when there is no mask.
    """
    self, indices, *rest = args
    if all(index is None or index.dtype not in MASKS for index in indices):
        return args
    places: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype in MASKS:
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
