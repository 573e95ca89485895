# SPDX-License-Identifier: Apache-2.0
"""The files of a board: registers by mmap, interrupts by a UIO device, a board that goes away.

What the board has in common with other backends is tested on tests/uio_standin.py by the tests of
all backends.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_host import CONFIG, fill_bytes, nop
from uio_standin import StandInBoard

from driver.backend.settings import UioSettings
from driver.backend.uio import MappedRegisters, UioBackend, UioInterrupt
from driver.errors import BackendDied, InputError, SimulatorTimeout
from driver.isa import DEVICE_ID, csr
from driver.runtime import Device

PAGE = 4096


@pytest.fixture
def board(tmp_path: Path) -> Iterator[StandInBoard]:
    opened = StandInBoard(CONFIG, tmp_path)
    yield opened
    opened.close()


def test_registers_are_words_of_the_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "registers"
    path.write_bytes(bytes(2 * PAGE))
    registers = MappedRegisters(path, PAGE, PAGE)
    registers.store(0x50, 0x1234_5678)
    registers.store(0x54, 0xFFFF_FFFF)
    assert registers.load(0x50) == 0x1234_5678
    data = path.read_bytes()
    assert struct.unpack_from("<II", data, PAGE + 0x50) == (0x1234_5678, 0xFFFF_FFFF)
    assert data[:PAGE] == bytes(PAGE)


def test_a_window_of_registers_is_driven_where_no_other_port_is_given(tmp_path: Path) -> None:
    """Registers that a plain file holds: CTRL reads 1 until somebody ends the reset."""
    registers, memory = tmp_path / "registers", tmp_path / "memory"
    registers.write_bytes(bytes(CONFIG.registers.size_bytes))
    with memory.open("wb") as file:
        file.truncate(CONFIG.memory.limit - CONFIG.memory.base)
    stand_in = MappedRegisters(registers, 0, CONFIG.registers.size_bytes)
    stand_in.store(csr.ID, DEVICE_ID)

    def end_reset() -> None:
        while not stand_in.load(csr.CTRL):
            time.sleep(1e-3)
        stand_in.store(csr.CTRL, 0)

    thread = threading.Thread(target=end_reset)
    thread.start()
    backend = UioBackend(CONFIG, settings=UioSettings(registers, memory))
    thread.join(10)
    backend.write_csr(csr.IRQ_ENABLE, 7)
    assert stand_in.load(csr.IRQ_ENABLE) == 7
    stand_in.store(csr.IRQ_STATUS, 2)
    assert backend.wait_interrupt(5) == 2
    backend.write_memory(CONFIG.memory.base, b"first bytes")
    with memory.open("rb") as file:
        assert file.read(11) == b"first bytes"
    stand_in.store(csr.IRQ_STATUS, 0)
    started = time.monotonic()
    with pytest.raises(SimulatorTimeout, match=r"no interrupt for 0\.1 s"):
        backend.wait_interrupt(0.1)
    assert time.monotonic() - started < 5
    backend.close()


def test_the_interrupt_is_enabled_before_each_wait() -> None:
    device, line = os.openpty()
    tty.setraw(line)
    interrupt = UioInterrupt(Path(os.ttyname(line)))
    interrupt.wait(0.01)
    assert os.read(device, 4) == struct.pack("<I", 1)
    os.write(device, struct.pack("<I", 1))
    started = time.monotonic()
    interrupt.wait(30)
    assert time.monotonic() - started < 10
    interrupt.close()
    os.close(device)
    os.close(line)


def test_a_board_that_goes_away_is_an_error_of_every_call(board: StandInBoard) -> None:
    device = Device(board, CONFIG)
    target = device.alloc(4096)
    device.submit([fill_bytes(target.address, 4096, 7)])
    assert board.memory[target.address - CONFIG.memory.base] == 7
    os.kill(board.process.pid, signal.SIGKILL)
    board.process.wait(10)
    for _ in range(2):
        with pytest.raises(BackendDied, match="does not answer"):
            device.submit([nop()])
    with pytest.raises(BackendDied):
        board.read_csr(csr.ID)
    with pytest.raises(BackendDied):
        board.read_memory(target.address, 16)
    with pytest.raises(BackendDied):
        board.write_memory(target.address, bytes(16))


def _files(folder: Path, identity: int) -> UioSettings:
    """Plain files as a board's, and its register ID."""
    registers, memory = folder / "registers", folder / "memory"
    content = bytearray(CONFIG.registers.size_bytes)
    content[csr.ID : csr.ID + 4] = struct.pack("<I", identity)
    registers.write_bytes(content)
    with memory.open("wb") as file:
        file.truncate(CONFIG.memory.limit - CONFIG.memory.base)
    return UioSettings(registers, memory)


def test_nothing_is_written_to_another_device(tmp_path: Path) -> None:
    settings = _files(tmp_path, 0x1234)
    before = settings.registers.read_bytes()
    with pytest.raises(InputError, match=r"registers: got .*, expected an NPU, .* not 0x1234"):
        UioBackend(CONFIG, settings=settings)
    assert settings.registers.read_bytes() == before


def test_a_board_has_one_user_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UioBackend, "reset", lambda self: None)  # nobody would end it
    settings = _files(tmp_path, DEVICE_ID)
    first = UioBackend(CONFIG, settings=settings)
    with pytest.raises(InputError, match=r"registers: got .*, expected a board that nobody else"):
        UioBackend(CONFIG, settings=settings)
    first.close()
    gone = UioSettings(settings.registers, tmp_path / "none")
    with pytest.raises(InputError, match="memory: got"):
        UioBackend(CONFIG, settings=gone)
    UioBackend(CONFIG, settings=settings).close()


def test_an_interrupt_that_ends_is_the_boards_death(tmp_path: Path) -> None:
    ended = tmp_path / "interrupt"
    ended.touch()
    interrupt = UioInterrupt(ended)
    os.lseek(interrupt._file, 0, os.SEEK_END)
    with pytest.raises(BackendDied, match="interrupt's file has ended"):
        interrupt.wait(0.1)
    interrupt.close()
    with pytest.raises(BackendDied, match="interrupt does not answer"):
        UioInterrupt(Path("/dev/full")).wait(0.1)


@pytest.mark.parametrize("missing", ["registers", "memory", "interrupt"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, missing: str) -> None:
    sizes = {
        "registers": CONFIG.registers.size_bytes,
        "memory": CONFIG.memory.limit - CONFIG.memory.base,
        "interrupt": 4,
    }
    files = {name: tmp_path / name for name in sizes}
    for name, size in sizes.items():
        if name != missing:
            with files[name].open("wb") as file:
                file.truncate(size)
    with pytest.raises(InputError, match=f"uio: {missing}: got .*, expected a "):
        UioBackend(CONFIG, settings=UioSettings(**files))


def test_a_file_that_is_too_short_is_named(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(bytes(PAGE))
    with pytest.raises(InputError, match=r"uio: registers: got .*, expected 0x10000 bytes"):
        UioBackend(CONFIG, settings=UioSettings(short, short))
