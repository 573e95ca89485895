# SPDX-License-Identifier: Apache-2.0
"""Values that a model takes out of a tensor as a whole: recorded element by element, as `item`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from driver.errors import InputError

_MOST_READ = 4096
"""Elements at a time."""
_READS = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__)


class HostReads(TorchFunctionMode):
    """While entered, `tolist`, `numpy` and `numpy.asarray` read each element by `item` as well,
    which an op records: so what follows from the values is judged.

    Raises InputError, from the model, for more than _MOST_READ elements.
    """

    def __init__(self, capsule_name: str) -> None:
        super().__init__()
        self._capsule_name = capsule_name

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if func in _READS:
            self._read(args[0], func.__name__)
        return made

    def _read(self, tensor: torch.Tensor, how: str) -> None:
        if tensor.numel() > _MOST_READ:
            found = f"{how} of {tensor.numel()} elements"
            raise InputError(self._capsule_name, "inputs", found, f"at most {_MOST_READ}")
        for element in tensor.detach().reshape(-1).unbind():
            element.item()
