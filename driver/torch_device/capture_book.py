# SPDX-License-Identifier: Apache-2.0
"""What a capture holds: storage contents of device memory, and how a row stands in a capsule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from driver.capture import TensorRef
from driver.capture.book import StorageBook, storage_key
from driver.capture.capsule import Bytes
from driver.capture.format import HOST_READ
from driver.capture.single import overload
from driver.capture.tensors import ELEMENT_NAMES
from driver.errors import InputError
from driver.torch_device.hardware import has_row
from driver.torch_device.observers import RowRun
from driver.torch_device.tensors import is_npu, storage_bytes

Tensor = torch.Tensor
CAPTURE = "torch.npu.capture"
_HIDDEN_WRITES = "batch_norm"
"""In the names of ops that write to running statistics though their schema does not say so."""


@dataclass(frozen=True)
class CaptureLimits:
    """What a capture may hold. Beyond it the program's next op raises InputError."""

    ops: int = 100_000
    size_bytes: int = 1 << 30
    """Of all distinct storage contents."""


@dataclass
class CaptureReport:
    """What a capture holds, and what is not in it."""

    ops: int = 0
    size_bytes: int = 0
    elements: int = 0
    """Elements of results within a derived bound of CPU torch's answer."""
    host_writes: int = 0
    """Operands that something else than an op changed between ops."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """Ops without a bound for such a call, and how often they ran."""
    not_recorded: Counter[str] = field(default_factory=Counter)
    """What computed values outside the NPU: an op on the CPU, a conversion by the host."""

    def __str__(self) -> str:
        text = f"{self.ops} ops, {self.size_bytes} bytes, {self.elements} elements within bounds"
        if self.host_writes:
            text += f"; {self.host_writes} operands written by the host"
        for name, found in (("judged", self.not_judged), ("recorded", self.not_recorded)):
            if found:
                items = ", ".join(f"{op} ({count})" for op, count in sorted(found.items()))
                text += f"; not {name}: {items}"
        return text


class DeviceBook(StorageBook):
    """Storage contents in device memory, up to a limit."""

    def __init__(self, capsule_name: str, max_bytes: int) -> None:
        super().__init__(capsule_name)
        self._max_bytes = max_bytes
        self.size_bytes = 0
        """Of all contents."""

    def bytes_of(self, tensor: Tensor) -> Bytes:
        """See StorageBook."""
        if not is_npu(tensor):
            return super().bytes_of(tensor)
        data: Bytes = storage_bytes(tensor).numpy()
        return data

    def check(self, tensor: Tensor, field: str) -> None:
        """See StorageBook."""
        if tensor.dtype not in ELEMENT_NAMES or tensor.is_neg():
            expected = f"one of {', '.join(ELEMENT_NAMES.values())}"
            raise InputError(self.capsule_name, field, str(tensor.dtype), expected)

    def ref(self, tensor: Tensor, field: str) -> TensorRef:
        """See StorageBook. InputError when the contents are more than the limit."""
        known = len(self.storages)
        found = super().ref(tensor, field)
        if len(self.storages) > known:
            self.size_bytes += self.storages[found.storage].size_bytes
        if self.size_bytes > self._max_bytes:
            text = f"{self.size_bytes} bytes of tensors at {field}"
            expected = f"at most max_bytes={self._max_bytes}; capture a shorter stretch"
            raise InputError(CAPTURE, "size", text, expected)
        return found


def form_of(run: RowRun) -> tuple[str, list[bool]]:
    """The op that stands for a row in a capsule, and which results are to be copied to their place.

    A result that is all of its storage is the op's own. One that is the first operand makes the op
    one in place, if the table has it. Any other one is part of memory that keeps its other bytes.
    """
    if overload(run.row)._schema.is_mutable or run.row == HOST_READ:
        return run.row, [False] * len(run.results)
    held = {storage_key(x) for x in _tensors((*run.args, *run.kwargs.values()))}
    apart = [x is not None and not _is_whole(x, held) for x in run.results]
    if not any(apart):
        return run.row, apart
    form = _in_place_row(run.row)
    if len(run.results) == 1 and has_row(form) and run.args:
        others = {storage_key(x) for x in _tensors((*run.args[1:], *run.kwargs.values()))}
        result = run.results[0]
        if _is_first(run, result) and result is not None and storage_key(result) not in others:
            return form, [False]
    return run.row, apart


def _in_place_row(row: str) -> str:
    """The name of the same overload in place: aten.add.Tensor → aten.add_.Tensor."""
    space, name, form = row.split(".")
    return f"{space}.{name.removesuffix('_')}_.{form}"


def _is_first(run: RowRun, result: Tensor | None) -> bool:
    """Whether the result is the first operand, element by element."""
    first = run.args[0]
    if not isinstance(first, Tensor) or result is None:
        return False
    same = first.data_ptr() == result.data_ptr() and first.dtype is result.dtype
    return same and first.shape == result.shape and first.stride() == result.stride()


@cache
def leaves_writes(op: str) -> bool:
    """Whether the op may write to arguments that it does not return."""
    schema = overload(op)._schema
    returned = {x for made in schema.returns if made.alias_info for x in made.alias_info.before_set}
    infos = [a.alias_info for a in schema.arguments if a.alias_info and a.alias_info.is_write]
    return _HIDDEN_WRITES in op or any(not info.before_set & returned for info in infos)


def _is_whole(result: Tensor, held: set[int]) -> bool:
    """Whether the result is all of its storage, and no operand is in there."""
    size_bytes = result.numel() * result.element_size()
    return storage_key(result) not in held and size_bytes == result.untyped_storage().nbytes()


def _tensors(values: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        items = value if isinstance(value, list | tuple) else (value,)
        found += [item for item in items if isinstance(item, Tensor)]
    return found
