# SPDX-License-Identifier: Apache-2.0
"""The device's memory as the bench sees it: the DPI DRAM, or cocotbext-axi's RAM in its place."""

from __future__ import annotations

import mmap
from typing import Any, Protocol

from cocotbext.axi import AxiBus, AxiRamRead, AxiRamWrite

from driver.backend.shared_memory import PAGE_BYTES, FaultRange, SharedMemory
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


class _RecordingWrite(AxiRamWrite):
    """AxiRam's write side that remembers the pages it touched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pages: set[int] = set()

    async def _write(self, address: int, data: bytes) -> None:
        first, last = address // PAGE_BYTES, (address + max(len(data), 1) - 1) // PAGE_BYTES
        self.pages.update(page * PAGE_BYTES for page in range(first, last + 1))
        await super()._write(address, data)


class RamMemory:
    """cocotbext-axi's RAM on ext_axi_*: shares no line with the DPI DRAM."""

    def __init__(self, dut: Any, size_bytes: int) -> None:
        self._bytes = mmap.mmap(-1, size_bytes)
        bus = AxiBus.from_prefix(dut, "ext_axi")
        options = {"reset_active_level": False, "mem": self._bytes, "size": size_bytes}
        self._writer = _RecordingWrite(bus.write, dut.clk, dut.rst_n, **options)
        self._reader = AxiRamRead(bus.read, dut.clk, dut.rst_n, **options)

    def read(self, address: int, size_bytes: int) -> bytes:
        return self._bytes[address : address + size_bytes]

    def write(self, address: int, data: bytes) -> None:
        self._bytes[address : address + len(data)] = data

    def dirty_pages(self) -> set[int]:
        return set(self._writer.pages)

    def set_faults(self, ranges: list[FaultRange]) -> None:
        assert not ranges, "AxiRam has no bus errors"
