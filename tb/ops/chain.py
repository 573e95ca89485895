# SPDX-License-Identifier: Apache-2.0
"""A capsule's run in device memory: each op works on the NPU's own earlier results.

A buffer of the run has one place in memory from its first use to its last; views are descriptors
on it. What no op of the run made (weights, inputs, constants) comes from the capsule. Owns the
buffers; judging is the session's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from driver.capture import Capsule, Constant, Op, TensorRef, Value
from driver.capture.single import overload
from driver.capture.tensors import TORCH_TYPES
from driver.errors import UnsupportedOp
from driver.isa import DTYPE_BYTES
from driver.lower import Arg, TensorView, lower
from golden.formats import decode
from golden.scoreboard import tensor_bits
from tb.ops.case import Case, module_path
from tb.ops.cost import compulsory_bytes
from tb.ops.pair import DevicePair
from tb.ops.placing import Placed

Buffer = int | str
Values = NDArray[Any]


@dataclass(frozen=True)
class Final:
    """One result of the whole run, in values."""

    npu: Values
    torch: Values


class Chain:
    """The memory of one run. `close` gives everything back."""

    def __init__(self, pair: DevicePair, capsule: Capsule, seed: int) -> None:
        self._pair, self._capsule = pair, capsule
        self._noise = np.random.default_rng(seed)
        self._addresses: dict[Buffer, int] = {}
        self._temporaries: list[int] = []
        kept = {_buffer(ref) for ref in capsule.document.outputs}
        self._last = {
            _buffer(ref): op.index
            for op in capsule.ops
            for _, ref in op.refs()
            if _buffer(ref) not in kept
        }

    def close(self) -> None:
        """Free what is still held."""
        self._free_temporaries()
        for address in self._addresses.values():
            self._pair.free(address)
        self._addresses.clear()

    # ------------------------------------------------------------------ one op
    def place(self, op: Op) -> Placed:
        """The op's packets on the buffers. UnsupportedOp when it has none."""
        args = tuple(self._argument(op, value) for value in op.inputs)
        kwargs = {name: self._argument(op, value) for name, value in op.kwargs.items()}
        results = self._results(op)
        program = lower(op.op, args, kwargs, results, self._temporary)
        for address, data in program.descriptors:
            self._pair.write(address, np.frombuffer(data, np.uint8))
        return Placed(program, results, compulsory_bytes(op.op, args, kwargs, results))

    def release(self, op: Op) -> None:
        """Free the op's temporaries, and the buffers that no later op names."""
        self._free_temporaries()
        for _, ref in op.refs():
            if self._last.get(_buffer(ref)) == op.index:
                address = self._addresses.pop(_buffer(ref), None)
                if address is not None:
                    self._pair.free(address)

    def case(self, op: Op, index: int) -> Case:
        """The op as a case of its own, with the operands that are in memory now."""
        return Case(
            index=index,
            op=op.op,
            args=tuple(self._torch_value(op, value) for value in op.inputs),
            module=module_path(self._capsule.name, op.module),
            source=op.source,
            kwargs={name: self._torch_value(op, value) for name, value in op.kwargs.items()},
        )

    def compute_on_cpu(self, op: Op, case: Case) -> None:
        """Let torch do what the NPU cannot, on the NPU's operands, and put its results there."""
        made = overload(op.op)(*case.args, **case.kwargs)
        outputs = made if isinstance(made, list | tuple) else (made,)
        for tensor, view in zip(outputs, self._results(op), strict=True):
            if view is not None:
                self._pair.store(view, tensor_bits(tensor))

    def finals(self) -> list[Final]:
        """The results of the run, here and in torch."""
        outputs = self._capsule.document.outputs
        return [Final(self.values(ref), recorded_values(self._capsule, ref)) for ref in outputs]

    def values(self, ref: TensorRef) -> Values:
        """A tensor's values in device memory."""
        view = self._view("outputs", ref)
        return decode(self._pair.elements(view), view.dtype)

    # ------------------------------------------------------------------ buffers
    def _view(self, op: str, ref: TensorRef) -> TensorView:
        """The tensor in memory; its buffer is loaded from the capsule where nobody made it."""
        buffer = _buffer(ref)
        if buffer not in self._addresses:
            data = self._capsule.data[ref.storage]
            self._addresses[buffer] = self._allocate(ref, data.size)
            self._pair.write(self._addresses[buffer], data)
        return self._at(op, ref, self._addresses[buffer])

    def _results(self, op: Op) -> tuple[TensorView | None, ...]:
        """Where the outputs go; a fresh buffer holds noise."""
        views: list[TensorView | None] = []
        for ref in op.outputs:
            if ref is None:
                views.append(None)
                continue
            buffer = _buffer(ref)
            if buffer not in self._addresses:
                size_bytes = self._capsule.document.storages[ref.storage].size_bytes
                self._addresses[buffer] = self._allocate(ref, size_bytes)
                self._pair.write(self._addresses[buffer], self._random(size_bytes))
            views.append(self._at(op.op, ref, self._addresses[buffer]))
        return tuple(views)

    def _at(self, op: str, ref: TensorRef, base: int) -> TensorView:
        if ref.npu_dtype is None:
            raise UnsupportedOp(op, "dtype", ref.dtype, "a type that the NPU holds")
        address = base + ref.offset * DTYPE_BYTES[ref.npu_dtype]
        truth = ref.dtype == "bool"
        return TensorView(address, ref.npu_dtype, ref.sizes, ref.strides, truth)

    def _allocate(self, ref: TensorRef, size_bytes: int) -> int:
        parameter = self._capsule.document.storages[ref.storage].parameter
        region = "activations" if parameter is None else "weights"
        return self._pair.alloc(max(size_bytes, 1), region)

    def _temporary(self, size_bytes: int) -> int:
        self._temporaries.append(self._pair.alloc(max(size_bytes, 1)))
        self._pair.write(self._temporaries[-1], self._random(size_bytes))
        return self._temporaries[-1]

    def _free_temporaries(self) -> None:
        for address in self._temporaries:
            self._pair.free(address)
        self._temporaries.clear()

    def _random(self, size_bytes: int) -> NDArray[np.uint8]:
        return self._noise.integers(0, 256, size_bytes, np.uint8)

    # ------------------------------------------------------------------ arguments
    def _argument(self, op: Op, value: Value) -> Arg:
        return _mapped(value, lambda ref: self._view(op.op, ref), lambda constant: constant.value)

    def _torch_value(self, op: Op, value: Value) -> Any:
        def tensor(ref: TensorRef) -> torch.Tensor:
            bits = self._pair.elements(self._view(op.op, ref))
            signed = torch.from_numpy(bits.view(f"i{bits.dtype.itemsize}"))
            made = torch.empty_strided(ref.sizes, ref.strides, dtype=TORCH_TYPES[ref.dtype])
            if 0 in ref.strides:  # a broadcast tensor cannot be filled: make it from its one copy
                return signed.view(TORCH_TYPES[ref.dtype])
            return made.copy_(signed.view(TORCH_TYPES[ref.dtype]))

        return _mapped(value, tensor, _torch_constant)


def _mapped(
    value: Value, tensor: Callable[[TensorRef], Any], constant: Callable[[Constant], Any]
) -> Any:
    """A recorded argument with its tensors and constants replaced."""
    if isinstance(value, tuple):
        return tuple(_mapped(item, tensor, constant) for item in value)
    if isinstance(value, TensorRef):
        return tensor(value)
    if isinstance(value, Constant):
        return float(value.value) if value.kind == "float" else constant(value)
    return value


def _torch_constant(constant: Constant) -> Any:
    made = torch.device(constant.value) if constant.kind == "device" else None
    return made or getattr(torch, constant.value)


def _buffer(ref: TensorRef) -> Buffer:
    """The key of the tensor's memory; a capsule that does not tell has one per storage."""
    return ref.storage if ref.buffer is None else ref.buffer


def recorded_values(capsule: Capsule, ref: TensorRef) -> Values:
    """What torch had, in values."""
    dtype = ref.npu_dtype
    assert dtype is not None
    bits = np.ascontiguousarray(capsule.array(ref)).view(f"u{DTYPE_BYTES[dtype]}")
    return decode(bits, dtype)


def used_tensors(op: Op) -> Iterator[TensorRef]:
    """The operands of an op, without its results."""
    outputs = [output for output in op.outputs if output is not None]
    refs = [ref for _, ref in op.refs()]
    yield from refs[: len(refs) - len(outputs)]
