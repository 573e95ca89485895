# SPDX-License-Identifier: Apache-2.0
"""A board that is none: a process with the cmodel that emulates the files of a UIO device.

Its memory is a mapped file, as the device's is; its interrupt is a terminal line, which reads and
writes like /dev/uioN. No process can see another one's loads and stores, so the accesses of
registers come over a socket: `SocketRegisters` takes the place of `MappedRegisters`.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tty
from contextlib import suppress
from pathlib import Path

from driver.backend.accesses import (
    Access,
    AccessResult,
    ClearDirtyPages,
    ReadDirtyPages,
    SetFaults,
    perform_one,
)
from driver.backend.functional import FunctionalBackend
from driver.backend.mapped_memory import MappedMemory
from driver.backend.settings import UioSettings
from driver.backend.shared_memory import FaultRange
from driver.backend.uio import UioBackend
from driver.backend.wire import pack_accesses, pack_results, unpack_accesses, unpack_results
from driver.config import HwConfig, load_config
from driver.errors import SimulatorTimeout
from driver.isa import DEVICE_ID, csr

LOAD, STORE, CONTROL = range(3)
_ACCESS = struct.Struct("<III")
_WORD = struct.Struct("<I")
_ANSWER_S = 60.0
_READS_PER_COMMAND = 4
_LONG_POLL = 64


# ---------------------------------------------------------------------- the host's side
class SocketRegisters:
    """A RegisterPort. A board that does not answer reads as ones, as on PCIe."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(_ANSWER_S)

    def load(self, offset: int) -> int:
        try:
            self._connection.sendall(_ACCESS.pack(LOAD, offset, 0))
            return int(_WORD.unpack(_received(self._connection, _WORD.size))[0])
        except OSError:
            return 0xFFFF_FFFF

    def store(self, offset: int, value: int) -> None:
        with suppress(OSError):  # a write to a device that is gone is lost
            self._connection.sendall(_ACCESS.pack(STORE, offset, value))

    def control(self, access: Access) -> AccessResult:
        """What a test does to the board and no program can: faults, pages written."""
        payload = pack_accesses([access])
        self._connection.sendall(_ACCESS.pack(CONTROL, 0, len(payload)) + payload)
        (size,) = _WORD.unpack(_received(self._connection, _WORD.size))
        return unpack_results([access], _received(self._connection, size))[0]


class StandInBoard(UioBackend):
    """The UIO backend on a board that this process starts, and ends with `close`."""

    def __init__(self, config: HwConfig, folder: Path, *, polled: bool = False) -> None:
        memory = folder / "memory"
        with memory.open("wb") as file:
            file.truncate(config.memory.limit - config.memory.base)
        master, slave = os.openpty()
        tty.setraw(slave)
        here, there = socket.socketpair()
        command = [sys.executable, __file__, str(memory), config.name]
        with there:
            self.process = subprocess.Popen(
                [*command, str(there.fileno()), str(-1 if polled else master)],
                pass_fds=[there.fileno(), master],
            )
        interrupt = None if polled else Path(os.ttyname(slave))
        self.registers = SocketRegisters(here)
        try:
            settings = UioSettings(folder / "none", memory, interrupt)
            super().__init__(config, settings=settings, registers=self.registers)
        finally:
            os.close(master)
            os.close(slave)

    def close(self) -> None:
        super().close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)

    def set_faults(self, ranges: list[FaultRange]) -> None:
        self.registers.control(SetFaults(tuple(ranges)))

    def dirty_pages(self) -> list[int]:
        pages = self.registers.control(ReadDirtyPages())
        assert isinstance(pages, list)
        return pages

    def clear_dirty(self) -> None:
        self.registers.control(ClearDirtyPages())


def _received(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data


# ---------------------------------------------------------------------- the board's process
def serve(memory: Path, config: HwConfig, connection: socket.socket, line: int) -> None:
    """Answer until the host's side of the socket is closed."""
    from golden.backend import CmodelBackend  # noqa: PLC0415 (the host's side needs no model)

    with memory.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    model = CmodelBackend(
        config, memory=MappedMemory(config.memory.base, config.memory.limit, mapped)
    )
    board, enabled = Board(model), False
    watched = [connection] if line < 0 else [connection, line]
    while True:
        ready, _, _ = select.select(watched, [], [])
        try:
            if line in ready:
                enabled = os.read(line, 4) == _WORD.pack(1) or enabled
            if connection in ready:
                board.answer(connection)
        except OSError:
            return  # the host has closed its side
        if enabled:
            try:
                model.wait_interrupt(0.0)  # runs what is queued, until the interrupt is high
            except SimulatorTimeout:
                continue
            os.write(line, _WORD.pack(1))
            enabled = False


class Board:
    """The accesses of the host. Time passes with its reads: a command ends at the first one after a
    doorbell, then at every fourth; a host that polls for long waits for many."""

    def __init__(self, model: FunctionalBackend) -> None:
        self._model = model
        self._reads = 0
        self._polls = 0

    def answer(self, connection: socket.socket) -> None:
        """One access. ConnectionResetError when the host is gone."""
        operation, offset, value = _ACCESS.unpack(_received(connection, _ACCESS.size))
        if operation == LOAD:
            connection.sendall(_WORD.pack(self._load(offset)))
        elif operation == STORE:
            if offset in (csr.RING_TAIL, csr.RING1_TAIL, csr.CMD_PUSH):
                self._reads = 0
            self._model.write_csr(offset, value)
        else:
            (access,) = unpack_accesses(_received(connection, value))
            results = pack_results([perform_one(self._model, access)])
            connection.sendall(_WORD.pack(len(results)) + results)

    def _load(self, offset: int) -> int:
        if offset == csr.ID:  # the host reads it to push its writes: takes no time
            return DEVICE_ID
        self._reads += 1
        self._polls = self._polls + 1 if offset == csr.IRQ_STATUS else 0
        if self._polls > _LONG_POLL:
            for _ in range(_LONG_POLL):
                self._model._step()
        elif self._reads % _READS_PER_COMMAND == 1:
            return self._model.read_csr(offset)
        self._model._cycle += 1
        return self._model._value(offset)


if __name__ == "__main__":
    path, name, descriptor, terminal = sys.argv[1:]
    chosen = load_config(Path(__file__).parents[1] / "sim_config.yaml", name)
    with socket.socket(fileno=int(descriptor)) as connected:
        serve(Path(path), chosen, connected, int(terminal))
