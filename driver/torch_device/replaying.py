# SPDX-License-Identifier: Apache-2.0
"""A capsule's ops on a cmodel of its own, one after the other: what the capsule alone explains.

Buffers are those of the capsule. What no op of it wrote is taken from its storages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.capture import Capsule, Constant, Op, TensorRef, Value
from driver.capture.capsule import Bytes
from driver.capture.format import HOST_READ
from driver.capture.single import recorded_stream
from driver.errors import UnsupportedOp
from driver.lower import Arg
from driver.runtime import TensorView
from driver.torch_device.hardware import view_of
from driver.torch_device.pool import POOL
from driver.torch_device.settings import DeviceSettings

BufferKey = int | str
Bits = NDArray[Any]


class CmodelReplay:
    """Use as a context manager; the cmodel has the memory of configuration `config`."""

    def __init__(
        self, capsule: Capsule, config: str, left: Mapping[tuple[int, BufferKey], str] | None = None
    ) -> None:
        """`left`: (op, buffer) → the storage that the op left there in the program, for arguments
        that it writes to without returning them: a capsule has no place for them."""
        self._capsule, self._left = capsule, left or {}
        self._device = POOL.open_private(DeviceSettings(backend="cmodel", config=config))
        self._places: dict[BufferKey, tuple[int, int]] = {}
        """Address and bytes of each buffer."""
        self._held: dict[BufferKey, str] = {}
        """The storage that each buffer holds, by the capsule."""
        self._last = {_key(ref): op.index for op in capsule.ops for _, ref in op.refs()}
        self.host_writes = 0
        """Operands that the program wrote to between ops by something else than an op."""

    def __enter__(self) -> CmodelReplay:
        return self

    def __exit__(self, *_: object) -> None:
        POOL.close_private(self._device)

    def bits(self) -> list[Bits | None]:
        """The elements of the results of the capsule's only op, as unsigned integers."""
        ((op, made),) = self.steps()
        return [
            None if ref is None or data is None else _elements(ref, data)
            for ref, data in zip(op.outputs, made, strict=True)
        ]

    def steps(self) -> Iterator[tuple[Op, list[Bytes | None]]]:
        """Each op with what it left in the buffers of its outputs: whole buffers, no copies."""
        for op in self._capsule.ops:
            yield op, self._run(op)
            for _, ref in op.refs():
                if self._last[_key(ref)] == op.index:
                    self._free(ref)

    def first_difference(self) -> Op | None:
        """The first op that leaves other bits than the capsule has; None when there is none."""
        for op, made in self.steps():
            for ref, data in zip(op.outputs, made, strict=True):
                if ref is not None and data is not None:
                    recorded = self._capsule.data[ref.storage]
                    if not np.array_equal(data[: recorded.size], recorded):
                        return op
            if not self._left_as_recorded(op):
                return op
        return None

    def _left_as_recorded(self, op: Op) -> bool:
        """Whether the arguments that an op writes to without returning them are the program's."""
        for ref in op.operands():
            storage = self._left.get((op.index, _key(ref)))
            if storage is not None:
                recorded = self._capsule.data[storage]
                if not np.array_equal(self._buffer(ref)[: recorded.size], recorded):
                    return False
                self._held[_key(ref)] = storage
        return True

    def _run(self, op: Op) -> list[Bytes | None]:
        for ref in op.operands():
            self._load(ref)
        args = [self._argument(op, value) for value in op.inputs]
        kwargs = {name: self._argument(op, value) for name, value in op.kwargs.items()}
        outputs = [None if ref is None else self._view(op, ref) for ref in op.outputs]
        if op.op != HOST_READ:
            self._device.run(op.op, args, kwargs, outputs, recorded_stream(self._capsule, op))
        self._held |= {_key(ref): ref.storage for ref in op.outputs if ref is not None}
        return [None if ref is None else self._buffer(ref) for ref in op.outputs]

    def _buffer(self, ref: TensorRef) -> Bytes:
        with self._device.host_bytes(*self._places[_key(ref)]) as data:
            return data  # the cmodel's memory itself

    def _load(self, ref: TensorRef) -> None:
        """Have the operand's buffer hold what it held when it was recorded."""
        if self._held.get(_key(ref)) == ref.storage:
            return
        if _key(ref) in self._held:
            self.host_writes += 1
        address, size_bytes = self._place(ref)
        data = self._capsule.data[ref.storage]
        with self._device.host_bytes(address, size_bytes, writes=True) as there:
            there[: data.size] = data
        self._held[_key(ref)] = ref.storage

    def _place(self, ref: TensorRef) -> tuple[int, int]:
        """The buffer's place; anew when the storage has grown."""
        size_bytes = max(self._capsule.document.storages[ref.storage].size_bytes, 1)
        found = self._places.get(_key(ref))
        if found is None or found[1] < size_bytes:
            if found is not None:
                self._free(ref)
            found = self._places[_key(ref)] = (self._device.allocate(size_bytes), size_bytes)
        return found

    def _free(self, ref: TensorRef) -> None:
        found = self._places.pop(_key(ref), None)
        self._held.pop(_key(ref), None)
        if found is not None:
            self._device.free([found[0]])

    def _argument(self, op: Op, value: Value) -> Arg:
        if isinstance(value, tuple):
            return tuple(self._argument(op, item) for item in value)
        if isinstance(value, TensorRef):
            return self._view(op, value)
        if isinstance(value, Constant):
            return float(value.value) if value.kind == "float" else value.value
        return value

    def _view(self, op: Op, ref: TensorRef) -> TensorView:
        if ref.npu_dtype is None:
            raise UnsupportedOp(op.op, "dtype", ref.dtype, "a type that the NPU holds")
        address = self._place(ref)[0] + ref.offset * ref.element_bytes
        return view_of(address, ref.npu_dtype, ref.sizes, ref.strides, ref.dtype == "bool")


def _elements(ref: TensorRef, data: Bytes) -> Bits:
    kind = np.dtype(f"<u{ref.element_bytes}")
    usable = data.size - data.size % ref.element_bytes
    if not ref.numel:
        return np.empty(ref.sizes, kind)
    steps = tuple(step * ref.element_bytes for step in ref.strides)
    whole = data[:usable].view(kind)[ref.offset :]
    return np.lib.stride_tricks.as_strided(whole, ref.sizes, steps).copy()


def _key(ref: TensorRef) -> BufferKey:
    return ref.storage if ref.buffer is None else ref.buffer
