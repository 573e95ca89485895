# SPDX-License-Identifier: Apache-2.0
"""The memory file that a simulator process and Python share; tb/sim/core/shared_memory.h is the
same layout in C++.

An anonymous file, handed over as an open descriptor: sparse, loaded in zero simulated time, and
gone with the last process that has it. Beside the bytes it holds which pages the device wrote, the
last write beats with their cycle, and the address ranges that answer with a bus error.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from driver.errors import AddressError, InfrastructureError

PAGE_BYTES = 4096
MAGIC = 0x4D49534D4855504E
VERSION = 2
FAULT_SLOTS = 16
LOG_ENTRIES = 1 << 20

_FAULT = np.dtype([("begin", "<u8"), ("end", "<u8"), ("on_read", "<u4"), ("on_write", "<u4")])
_HEADER = np.dtype(
    [
        ("magic", "<u8"),
        ("version", "<u4"),
        ("fault_count", "<u4"),
        ("memory_base", "<u8"),
        ("memory_bytes", "<u8"),
        ("dirty_offset", "<u8"),
        ("log_offset", "<u8"),
        ("log_entries", "<u8"),
        ("memory_offset", "<u8"),
        ("cycle", "<u8"),
        ("log_count", "<u8"),
        ("faults", _FAULT, (FAULT_SLOTS,)),
    ]
)
WRITE_RECORD = np.dtype([("cycle", "<u8"), ("address", "<u8"), ("strobe", "<u8")])
"""One accepted write beat: bit i of strobe is the byte at address + i."""


class BusError(IntEnum):
    """An AXI4 response that is an error."""

    SLVERR = 2
    DECERR = 3


@dataclass(frozen=True)
class FaultRange:
    """Accesses of the device that touch [begin, end) are answered with an error."""

    begin: int
    end: int
    on_read: bool = True
    on_write: bool = True
    response: BusError = BusError.SLVERR


def _page_up(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


class SharedMemory:
    """A mapping of the file. `bytes` is device memory, index 0 being address `base`."""

    def __init__(self, descriptor: int) -> None:
        """Map an existing file, which stays the caller's to close."""
        try:
            self._map = mmap.mmap(descriptor, 0)
        except OSError as error:
            raise InfrastructureError(f"shared memory: {error.strerror}") from error
        self._header = np.frombuffer(self._map, _HEADER, count=1)[0:1]
        header = self._header[0]
        if int(header["magic"]) != MAGIC or int(header["version"]) != VERSION:
            raise InfrastructureError("shared memory: unknown layout or version")
        self.base = int(header["memory_base"])
        self.size_bytes = int(header["memory_bytes"])
        pages = _page_up(self.size_bytes) // PAGE_BYTES
        self._dirty = self._bytes_at(int(header["dirty_offset"]), pages)
        self._log: NDArray[np.void] = np.frombuffer(
            self._map, WRITE_RECORD, int(header["log_entries"]), int(header["log_offset"])
        )
        self.bytes = self._bytes_at(int(header["memory_offset"]), self.size_bytes)

    def _bytes_at(self, offset: int, count: int) -> NDArray[np.uint8]:
        return np.frombuffer(self._map, np.uint8, count, offset)

    @staticmethod
    def create(base: int, size_bytes: int, log_entries: int = LOG_ENTRIES) -> int:
        """A new file of zeros for device addresses [base, base + size_bytes): its descriptor."""
        header = np.zeros(1, _HEADER)
        header["magic"] = MAGIC
        header["version"] = VERSION
        header["memory_base"] = base
        header["memory_bytes"] = size_bytes
        dirty = _page_up(_HEADER.itemsize)
        log = _page_up(dirty + _page_up(size_bytes) // PAGE_BYTES)
        memory = _page_up(log + log_entries * WRITE_RECORD.itemsize)
        header["dirty_offset"] = dirty
        header["log_offset"] = log
        header["log_entries"] = log_entries
        header["memory_offset"] = memory
        descriptor = os.memfd_create("npu-memory")
        try:
            os.ftruncate(descriptor, memory + _page_up(size_bytes))
            os.pwrite(descriptor, header.tobytes(), 0)
        except OSError as error:
            os.close(descriptor)
            raise InfrastructureError(f"shared memory: {error}") from error
        return descriptor

    @property
    def cycle(self) -> int:
        """Rising clock edges since the simulator started."""
        return int(self._header["cycle"][0])

    def offset(self, address: int, size_bytes: int) -> int:
        """Index of `address` in `bytes`. AddressError unless all the bytes lie in the memory."""
        offset = address - self.base
        if offset < 0 or size_bytes < 0 or offset + size_bytes > self.size_bytes:
            expected = f"all in {self.base:#x} to {self.base + self.size_bytes - 1:#x}"
            raise AddressError(address, size_bytes, expected)
        return offset

    def dirty_pages(self) -> list[int]:
        """Addresses of the 4 KiB pages that the device wrote since clear_dirty(), ascending."""
        return [self.base + int(page) * PAGE_BYTES for page in np.flatnonzero(self._dirty)]

    def clear_dirty(self) -> None:
        """Forget which pages were written."""
        self._dirty[self._dirty != 0] = 0

    def writes(self) -> NDArray[np.void]:
        """The write beats still in the log, oldest first: a copy, dtype WRITE_RECORD."""
        count, entries = int(self._header["log_count"][0]), len(self._log)
        if count <= entries:
            return self._log[:count].copy()
        start = count % entries
        return np.concatenate([self._log[start:], self._log[:start]])

    def last_writer(self, address: int) -> int | None:
        """Cycle of the device's last write to the byte; None when the log knows of none."""
        self.offset(address, 1)
        log = self._log[: min(int(self._header["log_count"][0]), len(self._log))]
        distance = np.uint64(address) - log["address"]  # wraps to a large value below the beat
        near = distance < np.uint64(64)
        hits = log[near]
        bit = (hits["strobe"] >> distance[near]) & np.uint64(1)
        cycles = hits["cycle"][bit != 0]
        return int(cycles.max()) if len(cycles) else None

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """Replace the ranges that answer with a bus error."""
        if len(ranges) > FAULT_SLOTS:
            raise AddressError(ranges[FAULT_SLOTS].begin, 0, f"at most {FAULT_SLOTS} fault ranges")
        table = self._header["faults"][0]
        for slot, fault in zip(table, ranges, strict=False):
            slot["begin"], slot["end"] = fault.begin, fault.end
            slot["on_read"] = fault.response if fault.on_read else 0
            slot["on_write"] = fault.response if fault.on_write else 0
        self._header["fault_count"] = len(ranges)
