# SPDX-License-Identifier: Apache-2.0
"""The device's memory as the bench sees it: the DPI DRAM, or cocotbext-axi's RAM in its place."""

from __future__ import annotations

import mmap
from typing import Any, Protocol

from cocotbext.axi import AxiBus, AxiRamRead, AxiRamWrite

from driver.backend.shared_memory import PAGE_BYTES, FaultRange, SharedMemory
from driver.config import MemoryMap
from tb.env.verdict import Mismatch
from tb.sim.cocotb_run import attach_memory


class BenchMemory(Protocol):
    """Back door to device memory, in zero time."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Bytes as they are now."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Change bytes behind the device's back."""
        ...

    def dirty_pages(self) -> set[int]:
        """Addresses of the 4 KiB pages that came in over m_axi."""
        ...

    def set_faults(self, ranges: list[FaultRange]) -> None:
        """Replace the ranges that answer the device with a bus error."""
        ...


class DpiMemory:
    """tb/hdl/npu_dram.sv on the simulator's shared memory."""

    def __init__(self) -> None:
        self.shared: SharedMemory = attach_memory()

    def read(self, address: int, size_bytes: int) -> bytes:
        offset = self.shared.offset(address, size_bytes)
        return self.shared.bytes[offset : offset + size_bytes].tobytes()

    def write(self, address: int, data: bytes) -> None:
        offset = self.shared.offset(address, len(data))
        self.shared.bytes[offset : offset + len(data)] = list(data)

    def dirty_pages(self) -> set[int]:
        return set(self.shared.dirty_pages())

    def set_faults(self, ranges: list[FaultRange]) -> None:
        self.shared.set_faults(ranges)


class _RamWrite(AxiRamWrite):
    """AxiRam's write side with a base address; it remembers the pages it touched."""

    def __init__(self, *args: Any, memory: MemoryMap, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._memory = memory
        self.pages: set[int] = set()

    async def _write(self, address: int, data: bytes) -> None:
        offset = _offset(self._memory, address, len(data))
        first, last = address // PAGE_BYTES, (address + max(len(data), 1) - 1) // PAGE_BYTES
        self.pages.update(page * PAGE_BYTES for page in range(first, last + 1))
        self.write(offset, data)


class _RamRead(AxiRamRead):
    """AxiRam's read side with a base address."""

    def __init__(self, *args: Any, memory: MemoryMap, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._memory = memory

    async def _read(self, address: int, length: int) -> bytes:
        return bytes(self.read(_offset(self._memory, address, length), length))


def _offset(memory: MemoryMap, address: int, size_bytes: int) -> int:
    """Of bytes in the RAM. Mismatch: the device asks for others, which AxiRam itself would find at
    the address modulo its size."""
    if not memory.base <= address <= address + size_bytes <= memory.limit:
        raise Mismatch(f"m_axi: {size_bytes} bytes at {address:#x} are outside the memory")
    return address - memory.base


class RamMemory:
    """cocotbext-axi's RAM on ext_axi_*: shares no line with the DPI DRAM."""

    def __init__(self, dut: Any, memory: MemoryMap) -> None:
        size_bytes = memory.limit - memory.base
        self._memory, self._bytes = memory, mmap.mmap(-1, size_bytes)
        bus = AxiBus.from_prefix(dut, "ext_axi")
        options: dict[str, Any] = {
            "reset_active_level": False,
            "mem": self._bytes,
            "memory": memory,
        }
        self._writer = _RamWrite(bus.write, dut.clk, dut.rst_n, **options)
        self._reader = _RamRead(bus.read, dut.clk, dut.rst_n, **options)

    def read(self, address: int, size_bytes: int) -> bytes:
        offset = _offset(self._memory, address, size_bytes)
        return self._bytes[offset : offset + size_bytes]

    def write(self, address: int, data: bytes) -> None:
        offset = _offset(self._memory, address, len(data))
        self._bytes[offset : offset + len(data)] = data

    def dirty_pages(self) -> set[int]:
        return set(self._writer.pages)

    def set_faults(self, ranges: list[FaultRange]) -> None:
        assert not ranges, "AxiRam has no bus errors"
