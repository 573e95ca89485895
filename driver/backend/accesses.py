# SPDX-License-Identifier: Apache-2.0
"""Several accesses of a device at once: one round trip where the device is far away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from driver.isa import csr


@dataclass(frozen=True, slots=True)
class ReadRegister:
    """Gives the register's value."""

    offset: int


@dataclass(frozen=True, slots=True)
class WriteRegister:
    """Gives None."""

    offset: int
    value: int


@dataclass(frozen=True, slots=True)
class ReadMemory:
    """Gives the bytes."""

    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class WriteMemory:
    """Gives None."""

    address: int
    data: bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class TakeInterrupt:
    """Waits for the interrupt, then clears the bits of IRQ_STATUS that were set; gives them."""

    timeout_s: float


Access = ReadRegister | WriteRegister | ReadMemory | WriteMemory | TakeInterrupt
AccessResult = int | bytes | None


class SingleAccesses(Protocol):
    """The verbs of a backend that an access is made of."""

    def read_csr(self, offset: int) -> int: ...  # noqa: D102 (driver.backend.Backend)

    def write_csr(self, offset: int, value: int) -> None: ...  # noqa: D102

    def read_memory(self, address: int, size_bytes: int) -> bytes: ...  # noqa: D102

    def write_memory(  # noqa: D102
        self, address: int, data: bytes | bytearray | memoryview
    ) -> None: ...

    def wait_interrupt(self, timeout_s: float) -> int: ...  # noqa: D102


@runtime_checkable
class BatchingBackend(Protocol):
    """A backend to which one message can carry several accesses."""

    def exchange(self, accesses: Sequence[Access]) -> list[AccessResult]:
        """The result of each access, in this order; after an error no later one is made."""
        ...


def perform(backend: SingleAccesses, accesses: Sequence[Access]) -> list[AccessResult]:
    """The result of each access, made in this order: in one message if the backend can."""
    if isinstance(backend, BatchingBackend):
        return backend.exchange(accesses)
    return [perform_one(backend, access) for access in accesses]


def perform_one(backend: SingleAccesses, access: Access) -> AccessResult:
    """The result of one access, by the backend's own verbs and errors."""
    match access:
        case ReadRegister(offset):
            return backend.read_csr(offset)
        case WriteRegister(offset, value):
            backend.write_csr(offset, value)
        case ReadMemory(address, size_bytes):
            return backend.read_memory(address, size_bytes)
        case WriteMemory(address, data):
            backend.write_memory(address, data)
        case TakeInterrupt(timeout_s):
            irq = backend.wait_interrupt(timeout_s)
            backend.write_csr(csr.IRQ_STATUS, irq)
            return irq
    return None
