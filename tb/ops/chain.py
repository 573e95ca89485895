# SPDX-License-Identifier: Apache-2.0
"""A capsule's run in device memory: each op works on the NPU's own earlier results.

A buffer of the run has one place in memory from its first use to its last; views are descriptors
on it. What no op of the run made (weights, inputs, constants) comes from the capsule. Owns the
buffers; judging is the session's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.capture import Capsule, Constant, Op, TensorRef, Value
from driver.capture.capsule import Bytes
from driver.capture.single import recorded_stream
from driver.capture.tensors import as_tensor
from driver.errors import UnsupportedOp
from driver.isa import DTYPE_BYTES
from driver.lower import Arg, TensorView, lower
from golden.reference import exact_values
from tb.ops.case import Case, module_path
from tb.ops.cost import compulsory_bytes
from tb.ops.images import Buffer, Images, buffer_of
from tb.ops.pair import DevicePair
from tb.ops.placing import Placed

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
        self._sizes: dict[Buffer, int] = {}
        self._temporaries: list[int] = []
        kept = {buffer_of(ref) for ref in capsule.document.outputs}
        self._last = {
            buffer_of(ref): op.index
            for op in capsule.ops
            for _, ref in op.refs()
            if buffer_of(ref) not in kept
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
        stream = recorded_stream(self._capsule, op)
        program = lower(op.op, args, kwargs, results, self._temporary, stream)
        for address, data in program.descriptors:
            self._pair.write(address, np.frombuffer(data, np.uint8))
        return Placed(program, results, compulsory_bytes(op.op, args, kwargs, results))

    def load(self, ref: TensorRef) -> None:
        """Put what the capsule has of the tensor's storage into its buffer."""
        data = self._capsule.data[ref.storage]
        address = self._address(ref)
        if self._sizes[buffer_of(ref)] < data.size:  # the model gave the storage another size
            self._pair.free(self._addresses.pop(buffer_of(ref)))
            address = self._address(ref)
        self._pair.write(address, data)

    def release(self, op: Op) -> list[Buffer]:
        """Free the op's temporaries, and the buffers that no later op names: these."""
        self._free_temporaries()
        freed = []
        for _, ref in op.refs():
            buffer = buffer_of(ref)
            if self._last.get(buffer) == op.index and buffer in self._addresses:
                self._pair.free(self._addresses.pop(buffer))
                freed.append(buffer)
        return freed

    def case(self, op: Op, index: int) -> Case:
        """The op as a case of its own, with the operands that are in memory now: a copy of them."""
        images = self._images()
        parameters = self._capsule.document.storages
        return Case(
            index=index,
            op=op.op,
            args=tuple(images.argument(value) for value in op.inputs),
            module=module_path(self._capsule.name, op.module),
            source=op.source,
            kwargs={name: images.argument(value) for name, value in op.kwargs.items()},
            weights=frozenset(
                position
                for position, value in enumerate(op.inputs)
                if isinstance(value, TensorRef) and parameters[value.storage].parameter is not None
            ),
            stream=recorded_stream(self._capsule, op),
        )

    def compute_on_cpu(self, op: Op) -> None:
        """Let torch do what the NPU cannot, on what is in the NPU's memory; what it writes, to its
        results and to its arguments, is written there."""
        for ref in op.outputs:
            if ref is not None:
                self._fresh(ref)
        images = self._images()
        images.run(op)
        for buffer, data in images.buffers():
            address = self._addresses[buffer]
            if not np.array_equal(data, self._pair.contents(address, data.size)):
                self._pair.write(address, data)

    def finals(self) -> list[Final]:
        """The results of the run, here and in torch."""
        outputs = self._capsule.document.outputs
        return [Final(self.values(ref), recorded_values(self._capsule, ref)) for ref in outputs]

    def values(self, ref: TensorRef) -> Values:
        """A tensor's values in device memory."""
        return exact_values(self._images().tensor(ref))

    def _images(self) -> Images:
        """What is in memory now, for torch."""
        return Images(self._capsule, self._bytes)

    def _bytes(self, ref: TensorRef) -> Bytes:
        address = self._address(ref)
        size_bytes = self._sizes[buffer_of(ref)]
        return self._pair.contents(address, size_bytes)

    # ------------------------------------------------------------------ buffers
    def _view(self, op: str, ref: TensorRef) -> TensorView:
        """The tensor in memory."""
        return self._at(op, ref, self._address(ref))

    def _address(self, ref: TensorRef) -> int:
        """The tensor's buffer; it is loaded from the capsule where nobody made it."""
        buffer = buffer_of(ref)
        if buffer not in self._addresses:
            data = self._capsule.data[ref.storage]
            self._allocate(ref, data.size)
            self._pair.write(self._addresses[buffer], data)
        return self._addresses[buffer]

    def _fresh(self, ref: TensorRef) -> int:
        """The buffer of a result; one that is new holds noise."""
        buffer = buffer_of(ref)
        if buffer not in self._addresses:
            size_bytes = self._capsule.document.storages[ref.storage].size_bytes
            self._allocate(ref, size_bytes)
            self._pair.write(self._addresses[buffer], self._random(size_bytes))
        return self._addresses[buffer]

    def _results(self, op: Op) -> tuple[TensorView | None, ...]:
        """Where the outputs go."""
        return tuple(
            None if ref is None else self._at(op.op, ref, self._fresh(ref)) for ref in op.outputs
        )

    def _at(self, op: str, ref: TensorRef, base: int) -> TensorView:
        if ref.npu_dtype is None:
            raise UnsupportedOp(op, "dtype", ref.dtype, "a type that the NPU holds")
        address = base + ref.offset * DTYPE_BYTES[ref.npu_dtype]
        truth = ref.dtype == "bool"
        return TensorView(address, ref.npu_dtype, ref.sizes, ref.strides, truth)

    def _allocate(self, ref: TensorRef, size_bytes: int) -> None:
        parameter = self._capsule.document.storages[ref.storage].parameter
        region = "activations" if parameter is None else "weights"
        self._addresses[buffer_of(ref)] = self._pair.alloc(max(size_bytes, 1), region)
        self._sizes[buffer_of(ref)] = size_bytes

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


def recorded_values(capsule: Capsule, ref: TensorRef) -> Values:
    """What torch had, in values."""
    return exact_values(as_tensor(capsule, ref))
