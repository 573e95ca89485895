# SPDX-License-Identifier: Apache-2.0
"""Accesses of a device as data, so that one message can carry several to a device far away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from driver.backend.protocol import Backend
from driver.backend.shared_memory import FaultRange
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
class WaitInterrupt:
    """Gives IRQ_STATUS when the interrupt is high."""

    timeout_s: float


@dataclass(frozen=True, slots=True)
class TakeInterrupt:
    """The same, and clears the bits of IRQ_STATUS that it gives."""

    timeout_s: float


@dataclass(frozen=True, slots=True)
class Reset:
    """Gives None."""


@dataclass(frozen=True, slots=True)
class SetFaults:
    """Gives None. Of an InspectableBackend, as the following ones."""

    ranges: tuple[FaultRange, ...]


@dataclass(frozen=True, slots=True)
class ReadDirtyPages:
    """Gives the addresses of the pages."""


@dataclass(frozen=True, slots=True)
class ClearDirtyPages:
    """Gives None."""


Access = (
    ReadRegister
    | WriteRegister
    | ReadMemory
    | WriteMemory
    | WaitInterrupt
    | TakeInterrupt
    | Reset
    | SetFaults
    | ReadDirtyPages
    | ClearDirtyPages
)
AccessResult = int | bytes | list[int] | None


@runtime_checkable
class BatchingBackend(Protocol):
    """A backend to which one message can carry several accesses."""

    def exchange(self, accesses: Sequence[Access]) -> list[AccessResult]:
        """The result of each access, in this order; after an error no later one is made."""
        ...


def perform(backend: Backend, accesses: Sequence[Access]) -> list[AccessResult]:
    """The result of each access, made in this order: in one message if the backend can."""
    if isinstance(backend, BatchingBackend):
        return backend.exchange(accesses)
    return [perform_one(backend, access) for access in accesses]


def perform_one(backend: Any, access: Access) -> AccessResult:
    """The result of one access, by the backend's own verbs and errors."""
    result: AccessResult = None
    match access:
        case ReadRegister(offset):
            result = backend.read_csr(offset)
        case WriteRegister(offset, value):
            backend.write_csr(offset, value)
        case ReadMemory(address, size_bytes):
            result = backend.read_memory(address, size_bytes)
        case WriteMemory(address, data):
            backend.write_memory(address, data)
        case WaitInterrupt(timeout_s):
            result = backend.wait_interrupt(timeout_s)
        case TakeInterrupt(timeout_s):
            result = irq = backend.wait_interrupt(timeout_s)
            backend.write_csr(csr.IRQ_STATUS, irq)
        case Reset():
            backend.reset()
        case SetFaults(ranges):
            backend.set_faults(list(ranges))
        case ReadDirtyPages():
            result = backend.dirty_pages()
        case ClearDirtyPages():
            backend.clear_dirty()
    return result
