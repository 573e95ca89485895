# SPDX-License-Identifier: Apache-2.0
"""Between torch's values and a capsule's records."""

from __future__ import annotations

import math

import numpy as np
import torch

from driver.capture.capsule import Bytes, Capsule
from driver.capture.format import Constant, Item, TensorRef, Value

TORCH_TYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
ELEMENT_NAMES = {dtype: name for name, dtype in TORCH_TYPES.items()}

_CONSTANT_KINDS: tuple[tuple[type, str], ...] = (
    (torch.dtype, "dtype"),
    (torch.layout, "layout"),
    (torch.device, "device"),
    (torch.memory_format, "memory_format"),
)


def storage_view(tensor: torch.Tensor) -> Bytes:
    """The bytes of a CPU tensor's whole storage, without a copy. `Tensor.numpy` would leave the
    program with a storage that cannot be resized."""
    storage = tensor.untyped_storage()
    flat = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return np.asarray(np.from_dlpack(flat), dtype=np.uint8)


def as_tensor(capsule: Capsule, ref: TensorRef) -> torch.Tensor:
    """A tensor with the recorded sizes, strides and offset on a private copy of its storage.

    Views of one storage do not share memory between calls: each call copies, so that nothing
    done to the tensor reaches the capsule.
    """
    storage = torch.from_numpy(capsule.data[ref.storage].copy()).untyped_storage()
    empty = torch.empty(0, dtype=TORCH_TYPES[ref.dtype])
    return empty.set_(storage, ref.offset, ref.sizes, ref.strides)


def to_constant(value: object) -> Item:
    """The record of a scalar argument.

    Raises:
        TypeError: the value has no record.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return Constant(kind="float", value=repr(value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for kind, name in _CONSTANT_KINDS:
        if isinstance(value, kind):
            return Constant.model_validate({"kind": name, "value": _bare(value)})
    raise TypeError(f"argument of type {type(value).__name__}")


def to_torch(capsule: Capsule, value: Value) -> object:
    """The argument that a record stands for, ready to be passed to the op."""
    if isinstance(value, tuple):
        return [to_torch(capsule, item) for item in value]
    if isinstance(value, TensorRef):
        return as_tensor(capsule, value)
    if isinstance(value, Constant):
        return _from_constant(value)
    return value


def _bare(value: object) -> str:
    return str(value).removeprefix("torch.")


def _from_constant(constant: Constant) -> object:
    if constant.kind == "float":
        return float(constant.value)
    if constant.kind == "device":
        return torch.device(constant.value)
    kinds = {name: kind for kind, name in _CONSTANT_KINDS}
    found = getattr(torch, constant.value, None)
    if not isinstance(found, kinds[constant.kind]):
        raise ValueError(f"torch has no {constant.kind} {constant.value!r}")
    return found
