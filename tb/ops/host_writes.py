# SPDX-License-Identifier: Apache-2.0
"""What the model's own code wrote to memory between ops (`.data`, numpy): a chain has to take these
bytes from the capsule. Found by following which storage each buffer held after each op."""

from __future__ import annotations

from driver.capture import Op, TensorRef
from tb.ops.images import BufferKey, buffer_of, writes_arguments


class HostWrites:
    """The storage that each buffer held after the ops so far."""

    def __init__(self) -> None:
        self._storages: dict[BufferKey, str] = {}

    def changed(self, op: Op) -> list[TensorRef]:
        """Operands whose buffers hold something else than the ops before left there."""
        return [
            ref
            for ref in op.operands()
            if self._storages.get(buffer_of(ref), ref.storage) != ref.storage
        ]

    def after(self, op: Op) -> None:
        """The op has run. What it wrote to an argument that it does not return is not recorded."""
        for ref in op.operands():
            self._storages[buffer_of(ref)] = ref.storage
        if writes_arguments(op):
            for ref in op.operands():
                self._storages.pop(buffer_of(ref), None)
        for output in op.outputs:
            if output is not None:
                self._storages[buffer_of(output)] = output.storage
