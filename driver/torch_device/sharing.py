# SPDX-License-Identifier: Apache-2.0
"""Tensors of the NPU on their way to another process, by torch.multiprocessing.

A device's memory belongs to the process that opened it. So what arrives is a copy on the receiver's
device of the same number; writing to it changes nothing here.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import reduce_tensor

_Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def _reduce(tensor: torch.Tensor) -> _Reduced:
    """By its bytes. RuntimeError of torch for a tensor that autograd computed."""
    if tensor.device.type != "npu" or (tensor.requires_grad and not tensor.is_leaf):
        reduced: _Reduced = reduce_tensor(tensor)
        return reduced
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter, (tensor.data, tensor.requires_grad)
    from driver.torch_device.tensors import host_bytes  # noqa: PLC0415 (the op table)

    elements = host_bytes(tensor.detach().cpu().resolve_conj().resolve_neg())
    place = (tensor.dtype, tuple(tensor.shape), str(tensor.device))
    return _rebuild, (elements, *place, tensor.requires_grad)


def _rebuild(
    elements: NDArray[np.uint8],
    dtype: torch.dtype,
    shape: tuple[int, ...],
    device: str,
    requires_grad: bool,
) -> torch.Tensor:
    made = torch.from_numpy(elements.copy()).view(dtype).reshape(shape)
    return made.to(device).requires_grad_(requires_grad)


def register() -> None:
    """In place of what torch registered, which would send an address."""
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduce)
