# SPDX-License-Identifier: Apache-2.0
"""From a torch module to a capsule: `capture`, `save_capsule`, `load_capsule`.

Importing this package does not import torch; the first use of `capture` or `as_tensor` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driver.capture.capsule import Capsule
from driver.capture.format import Constant, Op, Storage, TensorRef, Value
from driver.capture.store import load_capsule, save_capsule

if TYPE_CHECKING:
    from driver.capture.recorder import capture
    from driver.capture.tensors import as_tensor

__all__ = [
    "Capsule",
    "Constant",
    "Op",
    "Storage",
    "TensorRef",
    "Value",
    "as_tensor",
    "capture",
    "load_capsule",
    "save_capsule",
]


def __getattr__(name: str) -> Any:
    if name == "capture":
        from driver.capture.recorder import capture  # noqa: PLC0415 (torch takes seconds)

        return capture
    if name == "as_tensor":
        from driver.capture.tensors import as_tensor  # noqa: PLC0415 (torch takes seconds)

        return as_tensor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
