# SPDX-License-Identifier: Apache-2.0
"""The buffers of a capsule's run for torch: what it writes to one view, the others read.

Runs recorded ops on them. Knows torch and capsules; no device, no packets, no bounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from driver.capture import Capsule, Op, TensorRef, Value
from driver.capture.capsule import Bytes
from driver.capture.single import overload
from driver.capture.tensors import TORCH_TYPES, as_tensor, storage_view, to_torch
from driver.errors import UnsupportedOp
from golden.tensors import full_precision

BufferKey = int | str
"""Which buffer of the model a tensor lies in."""
Load = Callable[[TensorRef], Bytes]
"""The bytes of a tensor's whole buffer, as they are before anything is done to the image."""

_UNDECLARED = "batch_norm"
"""In the names of ops that write to running statistics though their schema does not say so."""


def buffer_of(ref: TensorRef) -> BufferKey:
    """The key of the tensor's memory; a capsule that does not tell has one per storage."""
    return ref.storage if ref.buffer is None else ref.buffer


def writes_arguments(op: Op) -> bool:
    """Whether torch may change the op's arguments."""
    return bool(overload(op.op)._schema.is_mutable) or _UNDECLARED in op.op


def draws_numbers(op: Op) -> bool:
    """Whether the op's result is random: run twice, it is another."""
    return torch.Tag.nondeterministic_seeded in overload(op.op).tags


@dataclass
class _Image:
    storage: torch.UntypedStorage
    own: bool
    """The bytes are the image's: they may be written."""


class Images:
    """One image per buffer, made when it is first named. `load` says what is in it then.

    `shared`: the loaded bytes belong to another owner and are never written; they are copied before
    the first op that may write to them.
    """

    def __init__(self, capsule: Capsule, load: Load, *, shared: bool = False) -> None:
        self._capsule, self._load, self._shared = capsule, load, shared
        self._images: dict[BufferKey, _Image] = {}

    def tensor(self, ref: TensorRef) -> torch.Tensor:
        """The tensor, on its buffer."""
        image = self._images.get(buffer_of(ref))
        if image is None:
            image = self._images[buffer_of(ref)] = self._loaded(ref)
        empty = torch.empty(0, dtype=TORCH_TYPES[ref.dtype])
        return empty.set_(image.storage, ref.offset, ref.sizes, ref.strides)

    def argument(self, value: Value) -> Any:
        """A recorded argument as torch takes it."""
        if isinstance(value, tuple):
            return [self.argument(item) for item in value]
        return (
            self.tensor(value) if isinstance(value, TensorRef) else to_torch(self._capsule, value)
        )

    def run(self, op: Op) -> None:
        """Have torch do the op, results and changed arguments into the images. What an op draws at
        random is taken from the record.

        UnsupportedOp when it also wrote to an argument that the record has no value of.
        """
        self._make_own(op)
        if draws_numbers(op):
            self._take_recorded(op)
            return
        args = [self.argument(value) for value in op.inputs]
        kwargs = {name: self.argument(value) for name, value in op.kwargs.items()}
        with full_precision(), torch.no_grad():
            made = overload(op.op)(*args, **kwargs)
        outputs = made if isinstance(made, list | tuple) else (made,)
        for tensor, ref in zip(outputs, op.outputs, strict=True):
            if ref is not None:
                self._put(ref, tensor)

    def buffers(self) -> Iterator[tuple[BufferKey, Bytes]]:
        """Every image and its bytes."""
        for buffer, image in self._images.items():
            flat = torch.empty(0, dtype=torch.uint8)
            yield buffer, storage_view(flat.set_(image.storage))

    def forget(self, buffer: BufferKey) -> None:
        """Nothing will ask for the buffer again."""
        self._images.pop(buffer, None)

    def _loaded(self, ref: TensorRef) -> _Image:
        data = self._load(ref)
        if not self._shared:
            return _Image(torch.from_numpy(data.copy()).untyped_storage(), own=True)
        with warnings.catch_warnings():  # that they cannot be written: `own` sees to it
            warnings.simplefilter("ignore", UserWarning)
            return _Image(torch.from_numpy(data).untyped_storage(), own=False)

    def _make_own(self, op: Op) -> None:
        """Copy what the op writes to, where the bytes are shared."""
        written = [ref for ref in op.outputs if ref is not None]
        if writes_arguments(op):
            written = [ref for _, ref in op.refs()]
        for ref in written:
            self.tensor(ref)
            image = self._images[buffer_of(ref)]
            if not image.own:
                self._images[buffer_of(ref)] = _Image(image.storage.clone(), own=True)

    def _put(self, ref: TensorRef, made: torch.Tensor | float) -> None:
        place = self.tensor(ref)
        if not isinstance(made, torch.Tensor):  # a number: of a read by the host, or of `equal`
            place.fill_(made)
            return
        if place.data_ptr() != made.data_ptr() or not place.numel():
            place.copy_(made)

    def _take_recorded(self, op: Op) -> None:
        schema = overload(op.op)._schema
        returned = {buffer_of(ref) for ref in op.outputs if ref is not None}
        for argument, value in zip(schema.arguments, op.inputs, strict=False):
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written and isinstance(value, TensorRef) and buffer_of(value) not in returned:
                name = f"argument {argument.name}"
                expected = "an op that returns what it draws: this value was not recorded"
                raise UnsupportedOp(op.op, name, "written at random", expected)
        for ref in op.outputs:
            if ref is not None:
                self.tensor(ref).copy_(as_tensor(self._capsule, ref))
