# SPDX-License-Identifier: Apache-2.0
"""Indices by tensors in dimensions that are not neighbours: torch puts what they choose first, so
the indexed dimensions come first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from driver.torch_device.formulas.unsupported_dtypes import WORDS, move_index
from driver.torch_device.index_arguments import masks_as_places

Tensor = torch.Tensor
Indices = Sequence[Tensor | None]


def _first(self: Tensor, indices: Indices) -> tuple[Tensor, list[Tensor]] | None:
    """The tensor with its indexed dimensions first, and their indices; None for neighbours."""
    _, places = masks_as_places((self, indices))
    used = [at for at, index in enumerate(places) if index is not None]
    if not used or used[-1] - used[0] == len(used) - 1:
        return None
    rest = [at for at in range(self.dim()) if at not in used]
    return self.permute(*used, *rest), [places[at] for at in used]


def index(self: Tensor, indices: Indices) -> Any:
    """What the indices choose."""
    if self.dtype in WORDS:
        return move_index(self, indices)
    moved = _first(self, indices)
    return NotImplemented if moved is None else torch.ops.aten.index(*moved)


def index_put_(self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Any:
    """`values` stored at what the indices choose."""
    moved = _first(self, indices)
    if moved is None:
        return NotImplemented
    torch.ops.aten.index_put_(*moved, values, accumulate)
    return self


def index_put(self: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Any:
    """The same in a copy."""
    if _first(self, indices) is None:
        return NotImplemented
    return torch.ops.aten.index_put_(self.clone(), indices, values, accumulate)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten.index.Tensor": index,
    "aten._unsafe_index.Tensor": index,
    "aten.index_put_.default": index_put_,
    "aten.index_put.default": index_put,
}
