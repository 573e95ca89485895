# SPDX-License-Identifier: Apache-2.0
"""A call of torch as errors name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch


def call_text(op: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The call in one line: aten.mm.out(float32[2, 3], float32[3, 4], out=float32[2, 4])."""
    given = [_text(value) for value in args]
    given += [f"{name}={_text(value)}" for name, value in kwargs.items()]
    return f"{op}({', '.join(given)})"


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)
