# SPDX-License-Identifier: Apache-2.0
"""An NPU on a board, as a Backend: registers and memory by mmap, interrupts by Linux's UIO.

Any file that can be mapped will do: /dev/uio0, a resource of a PCIe device in /sys, a DMA buffer of
a driver such as u-dma-buf. docs/adding-a-backend.md explains each part.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import struct
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from driver.backend.protocol import Feature
from driver.backend.registers import check_register
from driver.backend.settings import UioSettings
from driver.config import HwConfig
from driver.errors import (
    AddressError,
    BackendDied,
    InputError,
    SimulatorTimeout,
)
from driver.isa import DEVICE_ID, csr

_GONE = 0xFFFF_FFFF
"""What a read gives of a PCIe device that is not there any more."""
_DOORBELLS = frozenset((csr.RING_TAIL, csr.RING1_TAIL, csr.CMD_PUSH))
_LOOK_AGAIN_S = 1.0
"""A lost interrupt costs so long, and no more."""
_POLL_S = (20e-6, 1e-3)
"""First and longest pause between two looks at the status, without interrupts."""
_RESET_S = 60.0
_COUNT_BYTES = 4
"""Of the count of interrupts that a UIO device gives."""


class RegisterPort(Protocol):
    """32-bit accesses of the registers."""

    def load(self, offset: int) -> int:
        """The word at an offset."""
        ...

    def store(self, offset: int, value: int) -> None:
        """Write it."""
        ...


class MappedRegisters:
    """Registers that are mapped into this process: each access is one of 32 bits."""

    def __init__(self, path: Path, offset: int, size_bytes: int) -> None:
        self._map = map_file(path, offset, size_bytes, "registers")
        self._words = (ctypes.c_uint32 * (size_bytes // 4)).from_buffer(self._map)

    def load(self, offset: int) -> int:
        """See RegisterPort."""
        return self._words[offset // 4]

    def store(self, offset: int, value: int) -> None:
        """See RegisterPort."""
        self._words[offset // 4] = value


class UioInterrupt:
    """The interrupt of /dev/uioN: a read gives its count, and a write of 1 enables it again."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise InputError("uio", "interrupt", path, f"a UIO device: {error.strerror}") from error
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Return at an interrupt since the last call, or after that time. BackendDied: the file
        is no interrupt's any more."""
        try:
            os.write(self._file, struct.pack("<I", 1))
            if self._poll.poll(seconds * 1e3) and len(os.read(self._file, _COUNT_BYTES)) == 0:
                raise BackendDied("uio: the interrupt's file has ended")
        except OSError as error:
            raise BackendDied(f"uio: the interrupt does not answer: {error.strerror}") from error

    def close(self) -> None:
        """Release the file."""
        with suppress(OSError):
            os.close(self._file)


class UioBackend:
    """A device whose registers and memory are mapped. See driver.backend.Backend for the verbs.

    `registers`: another way to the registers than mapping settings.registers. Every verb raises
    BackendDied when the device does not answer, as after its board was taken out.
    """

    features: ClassVar = frozenset({Feature.CLOCK, Feature.MAPPED_MEMORY})

    def __init__(
        self, config: HwConfig, *, settings: UioSettings, registers: RegisterPort | None = None
    ) -> None:
        self._base = config.memory.base
        size_bytes = config.memory.limit - self._base
        at, of_registers = settings.registers_offset, config.registers.size_bytes
        self._enabled = 0
        """What IRQ_ENABLE holds: a read of the device takes a microsecond."""
        self._interrupt: UioInterrupt | None = None
        locked = ("registers", settings.registers, at, of_registers)
        if registers is not None:
            locked = ("memory", settings.memory, settings.memory_offset, size_bytes)
        with ExitStack() as opened:  # nothing stays open, and locked, of a board that is refused
            opened.callback(_lock(*locked).close)
            self._registers = registers or MappedRegisters(settings.registers, at, of_registers)
            mapped = map_file(settings.memory, settings.memory_offset, size_bytes, "memory")
            self._memory = np.frombuffer(mapped, np.uint8)
            if settings.interrupt is not None:
                self._interrupt = UioInterrupt(settings.interrupt)
                opened.callback(self._interrupt.close)
            self._check_id(settings.registers)
            self.reset()
            self._opened = opened.pop_all()

    def _check_id(self, path: Path) -> None:
        """Nothing is written to another device."""
        found = self.read_csr(csr.ID)
        if found != DEVICE_ID:
            expected = f"an NPU, whose register ID reads {DEVICE_ID:#x}"
            raise InputError("uio", "registers", path, f"{expected}, not {found:#x}")

    @property
    def memory(self) -> NDArray[np.uint8]:
        """See InspectableBackend."""
        return self._memory

    # ------------------------------------------------------------------ registers
    def read_csr(self, offset: int) -> int:
        """See Backend."""
        check_register(offset)
        value = self._registers.load(offset)
        if value == _GONE and self._registers.load(csr.ID) == _GONE:
            raise BackendDied("uio: the device does not answer: its registers read 0xffffffff")
        return value

    def write_csr(self, offset: int, value: int) -> None:
        """See Backend. A doorbell comes after what was written to memory.

        Writes of memory may wait in the processor or on the way; the answer to a read of a register
        comes after them.
        """
        check_register(offset, value)
        if offset in _DOORBELLS:
            self.read_csr(csr.ID)
        if offset == csr.IRQ_ENABLE:
            self._enabled = value
        if offset == csr.CTRL and value & csr.CTRL_SOFT_RESET_MASK:
            self._enabled = 0
        self._registers.store(offset, value)

    # ------------------------------------------------------------------ memory
    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """See Backend."""
        start = self._offset(address, size_bytes)
        data = self._memory[start : start + size_bytes].tobytes()
        self.read_csr(csr.ID)  # or the bytes are those of a board that has gone
        return data

    def write_memory(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """See Backend."""
        source = np.frombuffer(data, np.uint8)
        start = self._offset(address, source.size)
        self.read_csr(csr.ID)
        self._memory[start : start + source.size] = source

    def _offset(self, address: int, size_bytes: int) -> int:
        start = address - self._base
        if size_bytes < 0 or not 0 <= start <= self._memory.size - size_bytes:
            limit = self._base + self._memory.size
            expected = f"an access inside [{self._base:#x}, {limit:#x})"
            raise AddressError(address, size_bytes, expected)
        return start

    # ------------------------------------------------------------------ time
    def wait_interrupt(self, timeout_s: float) -> int:
        """See Backend. Sleeps until the interrupt; without one it looks, ever more rarely."""
        deadline = time.monotonic() + timeout_s
        pause_s = _POLL_S[0]
        while True:
            status = self.read_csr(csr.IRQ_STATUS)
            if status & self._enabled:
                return status
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise SimulatorTimeout(f"no interrupt for {timeout_s:g} s")
            if self._interrupt is not None:
                self._interrupt.wait(min(left_s, _LOOK_AGAIN_S))
            else:
                time.sleep(min(left_s, pause_s))
                pause_s = min(2 * pause_s, _POLL_S[1])

    def reset(self) -> None:
        """See Backend. By the soft reset, which waits for the command that runs."""
        deadline = time.monotonic() + _RESET_S
        self.write_csr(csr.CTRL, csr.CTRL_SOFT_RESET_MASK)
        while self.read_csr(csr.CTRL) & csr.CTRL_SOFT_RESET_MASK:
            if time.monotonic() > deadline:
                raise SimulatorTimeout(f"uio: the soft reset has not ended for {_RESET_S:g} s")
            time.sleep(_POLL_S[0])

    def close(self) -> None:
        """See Backend. The mappings go with the last view of the memory."""
        self._opened.close()


def _open(what: str, path: Path) -> BinaryIO:
    try:
        flags = os.O_RDWR | os.O_SYNC | os.O_CLOEXEC
        return os.fdopen(os.open(path, flags), "r+b", buffering=0)
    except OSError as error:
        raise InputError("uio", what, path, f"a file to map: {error.strerror}") from error


def _lock(what: str, path: Path, offset: int, size_bytes: int) -> BinaryIO:
    """One user of a board at a time: two would reset each other, and use the same memory.

    The file with the board's bytes locked until it is closed; several boards may be behind one
    file. InputError: the board is in use.
    """
    file = _open(what, path)
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, offset, size_bytes, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
    except OSError as error:
        file.close()
        expected = f"a board that nobody else has open: {error.strerror}"
        raise InputError("uio", what, path, expected) from error
    return file


def map_file(path: Path, offset: int, size_bytes: int, what: str) -> mmap.mmap:
    """A file mapped for reading and writing. InputError when it cannot be."""
    with _open(what, path) as file:
        try:
            return mmap.mmap(file.fileno(), size_bytes, offset=offset)
        except (OSError, ValueError) as error:
            expected = f"{size_bytes:#x} bytes from {offset:#x} on: {error}"
            raise InputError("uio", what, path, expected) from error
