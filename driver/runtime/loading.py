# SPDX-License-Identifier: Apache-2.0
"""The one way of a program into memory: sections allocated, program bound, contents written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from numpy.typing import NDArray

from driver.runtime.buffer import Buffer
from driver.runtime.program import BoundProgram, Program


class DeviceMemory(Protocol):
    """Memory to load programs into: a device's, or that of several devices alike."""

    def alloc(self, size_bytes: int) -> Buffer:
        """Fresh bytes of the default region."""
        ...

    def free(self, buffer: Buffer) -> None:
        """Give back an allocation."""
        ...

    def write(self, address: int, array: NDArray[Any]) -> None:
        """Store bytes."""
        ...


@contextmanager
def loaded(
    memory: DeviceMemory, program: Program, addresses: Sequence[int] | None = None
) -> Iterator[BoundProgram]:
    """The program bound, ready to submit; the memory of its sections is freed afterwards.

    `addresses`: of the operands, by default those of the program's own buffers. Every section is an
    allocation of its own, in the program's order. OutOfMemory when one does not fit.
    """
    if addresses is None:
        addresses = [buffer.address for buffer in program.operands]
    sections: list[Buffer] = []
    try:
        for section in program.sections:
            sections.append(memory.alloc(section.size_bytes))
        bound = program.bind([*addresses, *(buffer.address for buffer in sections)])
        for address, data in bound.writes:
            memory.write(address, data)
        yield bound
    finally:
        for buffer in sections:
            memory.free(buffer)
