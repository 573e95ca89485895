# SPDX-License-Identifier: Apache-2.0
"""A capsule's run in device memory: each op works on the NPU's own earlier results.

A buffer of the run has one place in memory from its first use to its last; views are descriptors
on it. What no op of the run made (weights, inputs, constants) comes from the capsule. Owns the
buffers; judging is the session's.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.capture import Capsule, Op, TensorRef, Value
from driver.capture.capsule import Bytes
from driver.capture.single import overload, recorded_stream
from driver.capture.tensors import as_tensor
from driver.compile import fused_program, queued
from driver.lower import Arg, lower
from driver.runtime import Buffer, Program, TensorView, loaded
from golden.tensors import values_of
from tb.ops.case import Case, module_path
from tb.ops.cost import compulsory_bytes
from tb.ops.images import BufferKey, Images, buffer_of
from tb.ops.pair import DevicePair
from tb.ops.placing import Memory, NoisyMemory, Placed, recorded_argument, recorded_view

Values = NDArray[Any]


@dataclass(frozen=True)
class ModelOutput:
    """One result of the whole run, in values."""

    npu: Values
    torch: Values


class Chain:
    """The memory of one run. `close` gives everything back."""

    def __init__(self, pair: DevicePair, capsule: Capsule, seed: int) -> None:
        self._pair, self._capsule = pair, capsule
        self._fresh_memory = NoisyMemory(pair, np.random.default_rng(seed))
        self._buffers: dict[BufferKey, Buffer] = {}
        self._sizes: dict[BufferKey, int] = {}
        """Of the storages: a buffer has at least one byte."""
        self._given: set[BufferKey] = set()
        """Buffers that hold what the capsule has."""
        self._loaded = ExitStack()
        """The program that runs."""
        kept = {buffer_of(ref) for ref in capsule.document.outputs}
        self._last = {
            buffer_of(ref): op.index
            for op in capsule.ops
            for _, ref in op.refs()
            if buffer_of(ref) not in kept
        }

    def close(self) -> None:
        """Free what is still held."""
        self._loaded.close()
        for buffer in self._buffers.values():
            self._pair.free(buffer)
        self._buffers.clear()

    # ------------------------------------------------------------------ one op
    def place(self, op: Op, written: Sequence[str] = ()) -> Placed:
        """The op's packets on the buffers. UnsupportedOp when it has none.

        `written`: arguments that it writes to without returning them; they are results too.
        """
        lowered, args, kwargs, results = self._lowered(op)
        program = fused_program(lowered, self._pair.config)
        bound = self._loaded.enter_context(loaded(self._fresh_memory, program))
        names = [argument.name for argument in overload(op.op)._schema.arguments]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        left = [view for name in written if isinstance(view := given[name], TensorView)]
        results = (*results, *left)
        read = compulsory_bytes(op.op, args, kwargs, results)
        return Placed(bound.packets, results, bound.temporaries, read)

    def place_queue(self, ops: Sequence[Op]) -> Placed:
        """The packets of these ops as one program, whose results are the capsule's outputs.

        What the ops make and the capsule does not return is temporary.
        """
        programs, made = [], set()
        for op in ops:
            programs.append(self._lowered(op)[0])
            made |= {buffer_of(ref) for ref in op.outputs if ref is not None}
        outputs = self._capsule.document.outputs
        made -= {buffer_of(ref) for ref in outputs}
        made -= self._given
        temporaries = [self._buffers[key] for key in sorted(made, key=str)]
        program = queued(self._capsule.name, programs, temporaries, self._pair.config)
        bound = self._loaded.enter_context(loaded(self._fresh_memory, program))
        spans = (range(one.address, one.address + one.size_bytes) for one in temporaries)
        return Placed(bound.packets, self.outputs(), (*bound.temporaries, *spans), 0)

    def outputs(self) -> tuple[TensorView, ...]:
        """Where the results of the run are."""
        outputs = self._capsule.document.outputs
        return tuple(recorded_view("output", ref, self._buffer(ref)) for ref in outputs)

    def _lowered(
        self, op: Op
    ) -> tuple[Program, tuple[Arg, ...], dict[str, Arg], tuple[TensorView | None, ...]]:
        """The op's program as it is lowered, its arguments and its results."""
        args = tuple(self._argument(op, value) for value in op.inputs)
        kwargs = {name: self._argument(op, value) for name, value in op.kwargs.items()}
        results = tuple(
            None if ref is None else recorded_view(op.op, ref, self._fresh(ref))
            for ref in op.outputs
        )
        stream = recorded_stream(self._capsule, op)
        return lower(op.op, args, kwargs, results, self._pair.config, stream), args, kwargs, results

    def load(self, ref: TensorRef) -> None:
        """Put what the capsule has of the tensor's storage into its buffer."""
        data = self._capsule.data[ref.storage]
        buffer = self._buffer(ref)
        if self._sizes[buffer_of(ref)] < data.size:  # the model gave the storage another size
            self._pair.free(self._buffers.pop(buffer_of(ref)))
            buffer = self._buffer(ref)
        self._pair.write(buffer.address, data)

    def release(self, op: Op) -> list[BufferKey]:
        """Free the op's temporaries, and the buffers that no later op names: these."""
        self._loaded.close()
        freed = []
        for _, ref in op.refs():
            key = buffer_of(ref)
            if self._last.get(key) == op.index and key in self._buffers:
                self._pair.free(self._buffers.pop(key))
                freed.append(key)
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
        for key, data in images.buffers():
            address = self._buffers[key].address
            if not np.array_equal(data, self._pair.contents(address, data.size)):
                self._pair.write(address, data)

    def finals(self) -> list[ModelOutput]:
        """The results of the run, here and in torch."""
        outputs = self._capsule.document.outputs
        return [
            ModelOutput(self.values(ref), recorded_values(self._capsule, ref)) for ref in outputs
        ]

    def values(self, ref: TensorRef) -> Values:
        """A tensor's values in device memory."""
        return values_of(self._images().tensor(ref))

    def _images(self) -> Images:
        """What is in memory now, for torch."""
        return Images(self._capsule, self._bytes)

    def _bytes(self, ref: TensorRef) -> Bytes:
        buffer = self._buffer(ref)
        return self._pair.contents(buffer.address, self._sizes[buffer_of(ref)])

    # ------------------------------------------------------------------ buffers
    def _buffer(self, ref: TensorRef) -> Buffer:
        """The tensor's buffer; it is loaded from the capsule if no op has made it."""
        key = buffer_of(ref)
        if key not in self._buffers:
            data = self._capsule.data[ref.storage]
            self._allocate(self._pair, ref, data.size)
            self._pair.write(self._buffers[key].address, data)
            self._given.add(key)
        return self._buffers[key]

    def _fresh(self, ref: TensorRef) -> Buffer:
        """The buffer of a result; one that is new holds noise."""
        key = buffer_of(ref)
        if key not in self._buffers:
            size_bytes = self._capsule.document.storages[ref.storage].size_bytes
            self._allocate(self._fresh_memory, ref, size_bytes)
        return self._buffers[key]

    def _allocate(self, memory: Memory | NoisyMemory, ref: TensorRef, size_bytes: int) -> None:
        parameter = self._capsule.document.storages[ref.storage].parameter
        region = "activations" if parameter is None else "weights"
        self._buffers[buffer_of(ref)] = memory.alloc(max(size_bytes, 1), region)
        self._sizes[buffer_of(ref)] = size_bytes

    def _argument(self, op: Op, value: Value) -> Arg:
        return recorded_argument(
            op.op, value, lambda ref: recorded_view(op.op, ref, self._buffer(ref))
        )


def recorded_values(capsule: Capsule, ref: TensorRef) -> Values:
    """What torch had, in values."""
    return values_of(as_tensor(capsule, ref))
