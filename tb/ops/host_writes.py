# SPDX-License-Identifier: Apache-2.0
"""What a chain has to take from the capsule besides weights and inputs: what the model's own code
wrote to memory between ops (`.data`, numpy), and tensors that no op of the record made (numpy,
another thread, attributes). Found by following which storage each buffer held after each op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from driver.capture import Capsule, Op, TensorRef
from driver.capture.schemas import written_values
from driver.capture.single import overload
from tb.ops.images import BufferKey, buffer_of, writes_arguments

_CONSTANT = "aten.lift_fresh.default"
"""Takes what torch.tensor and torch.from_numpy make: a constant of the record, in the ledger."""


@dataclass(frozen=True)
class HostTensor:
    """A tensor that the model's own code made or wrote, and the op that takes it; None: the run's
    result is one."""

    op: Op | None
    ref: TensorRef

    @property
    def size_bytes(self) -> int:
        """Of its elements."""
        return self.ref.numel * self.ref.element_bytes


class HostWrites:
    """The storage that each buffer held after the ops so far."""

    def __init__(self, capsule: Capsule) -> None:
        self._document = capsule.document
        self._storages: dict[BufferKey, str] = {}
        self._given = {buffer_of(ref) for ref in capsule.document.inputs}

    def changed(self, op: Op) -> list[TensorRef]:
        """Operands whose buffers hold something else than the ops before left there."""
        return [ref for ref in op.operands() if self._is_changed(ref)]

    def made(self, op: Op) -> list[TensorRef]:
        """Operands that are no input, no parameter and no result of an op. A stretch of a program
        has no inputs of its own: nothing is said of it."""
        if op.op == _CONSTANT:
            return []
        return [ref for ref in op.operands() if self._is_made(ref)]

    def in_results(self) -> list[TensorRef]:
        """Results of the whole run that are not what the ops left."""
        outputs = self._document.outputs
        return [ref for ref in outputs if self._is_changed(ref) or self._is_made(ref)]

    def after(self, op: Op) -> None:
        """The op has run. What it wrote to an argument that it does not return is not recorded."""
        for ref in op.operands():
            self._storages[buffer_of(ref)] = ref.storage
        for ref in _written(op):
            self._storages.pop(buffer_of(ref), None)
            self._given.add(buffer_of(ref))
        for output in op.outputs:
            if output is not None:
                self._storages[buffer_of(output)] = output.storage

    def _is_changed(self, ref: TensorRef) -> bool:
        return self._storages.get(buffer_of(ref), ref.storage) != ref.storage

    def _is_made(self, ref: TensorRef) -> bool:
        known = buffer_of(ref) in self._storages or buffer_of(ref) in self._given
        named = self._document.storages[ref.storage].parameter is not None
        return bool(self._document.inputs) and not (known or named)


def _written(op: Op) -> Iterator[TensorRef]:
    """The arguments that the op writes to; all of one that does not declare them."""
    if not writes_arguments(op):
        return iter(())
    func = overload(op.op)
    if not func._schema.is_mutable:
        return op.operands()
    values = written_values(func, op.inputs, op.kwargs)
    return (value for value in values if isinstance(value, TensorRef))
