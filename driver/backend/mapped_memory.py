# SPDX-License-Identifier: Apache-2.0
"""The bytes of [MemBase, MemLimit) in this process: a sparse anonymous mapping.

Pages cost nothing until touched and read as zero. Owns the bounds check of host accesses.
"""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

from driver.errors import AddressError, InfrastructureError


class MappedMemory:
    """Device memory with host addresses behind it."""

    def __init__(self, base: int, limit: int, mapped: mmap.mmap | None = None) -> None:
        """`mapped`: the bytes themselves, instead of fresh ones. InfrastructureError: the machine
        has no room for so many addresses."""
        self._base = base
        self._limit = limit
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        if mapped is None:
            try:
                mapped = mmap.mmap(-1, limit - base, flags=flags)
            except OSError as error:
                what = f"device memory of {limit - base} bytes cannot be mapped"
                raise InfrastructureError(f"{what}: {error.strerror}") from error
        self._bytes = np.frombuffer(mapped, dtype=np.uint8, count=limit - base)

    @property
    def array(self) -> NDArray[np.uint8]:
        """All bytes; index 0 is MemBase. The same storage, not a copy."""
        return self._bytes

    def contains(self, address: int, size_bytes: int) -> bool:
        """True when every byte of [address, address + size_bytes) is device memory."""
        return self._base <= address and size_bytes >= 0 and address + size_bytes <= self._limit

    def read(self, address: int, size_bytes: int) -> bytes:
        """A copy of the bytes. AddressError when not all are inside."""
        start = self._offset(address, size_bytes)
        return self._bytes[start : start + size_bytes].tobytes()

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store the bytes. AddressError, and nothing stored, when not all are inside."""
        source = np.frombuffer(data, dtype=np.uint8)
        start = self._offset(address, source.size)
        self._bytes[start : start + source.size] = source

    def _offset(self, address: int, size_bytes: int) -> int:
        if not self.contains(address, size_bytes):
            expected = f"an access inside [{self._base:#x}, {self._limit:#x})"
            raise AddressError(address, size_bytes, expected)
        return address - self._base
