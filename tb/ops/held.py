# SPDX-License-Identifier: Apache-2.0
"""What torch had in each memory of a run, op by op: where it changed without an op, the model's own
code wrote to it (`.data`, numpy), and a chain has to take the new bytes from the capsule."""

from __future__ import annotations

from driver.capture import Op, TensorRef
from tb.ops.images import BufferKey, buffer_of, writes_arguments


class Held:
    """The storage that each buffer held after the ops so far."""

    def __init__(self) -> None:
        self._held: dict[BufferKey, str] = {}

    def changed(self, op: Op) -> list[TensorRef]:
        """Operands whose buffers hold something else than the ops before left there."""
        return [
            ref
            for ref in op.operands()
            if self._held.get(buffer_of(ref), ref.storage) != ref.storage
        ]

    def after(self, op: Op) -> None:
        """The op has run. What it wrote to an argument that it does not return is not recorded."""
        for ref in op.operands():
            self._held[buffer_of(ref)] = ref.storage
        if writes_arguments(op):
            for ref in op.operands():
                self._held.pop(buffer_of(ref), None)
        for output in op.outputs:
            if output is not None:
                self._held[buffer_of(output)] = output.storage
