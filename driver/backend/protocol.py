# SPDX-License-Identifier: Apache-2.0
"""What a device looks like from the driver: registers, memory, one interrupt.

A backend is whatever answers these verbs: a model, a simulator in its own process, a server,
hardware.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from driver.backend.shared_memory import FaultRange


class Feature(StrEnum):
    """What a backend can do besides the verbs; its attribute `features` holds some of them."""

    CLOCK = "clock"
    """The CYCLE registers count clock cycles."""
    MAPPED_MEMORY = "mapped_memory"
    """Device memory is the array `memory` in this process."""
    DIRTY_PAGES = "dirty_pages"
    """It knows which pages the device wrote."""
    FAULTS = "faults"
    """Its memory can be made to answer with errors."""


class Backend(Protocol):
    """One device. Any verb may raise BackendDied or SimulatorTimeout."""

    def read_csr(self, offset: int) -> int:
        """The 32-bit register at `offset` (driver.isa.csr). RegisterError outside the map."""
        ...

    def write_csr(self, offset: int, value: int) -> None:
        """Write a 32-bit register. RegisterError outside the map, or when value does not fit."""
        ...

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """Bytes of device memory. AddressError unless all lie inside [MemBase, MemLimit)."""
        ...

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Write bytes to device memory. AddressError, and nothing written, when out of range."""
        ...

    def wait_interrupt(self, timeout_s: float) -> int:
        """Wait until irq is high; returns IRQ_STATUS. SimulatorTimeout after that many seconds."""
        ...

    def reset(self) -> None:
        """Pull rst_n: registers, queues and sequence numbers start anew, memory keeps its bytes."""
        ...

    def close(self) -> None:
        """Release the device. Any number of calls is fine; no other verb may follow."""
        ...


class InspectableBackend(Backend, Protocol):
    """A device in this machine, whose memory can be looked at and made to fail."""

    @property
    def memory(self) -> NDArray[np.uint8]:
        """Device memory in place; index 0 is address MemBase."""
        ...

    def dirty_pages(self) -> list[int]:
        """Addresses of the 4 KiB pages that the device wrote since clear_dirty(), ascending."""
        ...

    def clear_dirty(self) -> None:
        """Forget which pages were written."""
        ...

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """Replace the address ranges that answer the device with a bus error."""
        ...
