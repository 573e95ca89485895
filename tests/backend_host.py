# SPDX-License-Identifier: Apache-2.0
"""Drives a backend by registers alone, for the contract tests: what a first driver would do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from driver.backend import InspectableBackend
from driver.config import HwConfig, load_config
from driver.isa import (
    DEVICE_ID,
    ISA_VERSION,
    CompletionRecord,
    DeviceState,
    DType,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from driver.isa.image import PROGRAM_RAM, PROGRAM_RAM_LINES
from driver.isa.programs import BOOT_DIGEST

EXECUTING = ("cmodel", "rtl", "remote", "uio", "uio-polled")
"""Backends that compute; "remote" is a cmodel behind a server, "uio" one behind the files of a
board, with and without interrupts."""
BACKENDS = ("null", *EXECUTING)
CONFIG = load_config(Path(__file__).parents[1] / "sim_config.yaml", "small")
executes = pytest.mark.parametrize("opened", EXECUTING, indirect=True)

WAIT_S = 60
LONG_BYTES = 1 << 20
"""A FILL of so many bytes outlasts a few register accesses."""
COMPLETE = csr.IRQ_STATUS_COMPLETE_MASK
EMPTY = csr.IRQ_STATUS_EMPTY_MASK
ERROR = csr.IRQ_STATUS_ERROR_MASK
ALL_IRQS = COMPLETE | EMPTY | ERROR


@dataclass
class Host:
    """Registers and fixed addresses of one backend. The layout leaves 1 MiB between things."""

    backend: InspectableBackend
    config: HwConfig
    tail: int = 0
    ring_log2: int = 3

    @property
    def ring(self) -> int:
        return self.config.memory.base + 0x10_0000

    @property
    def records(self) -> int:
        return self.config.memory.base + 0x20_0000

    @property
    def data(self) -> int:
        return self.config.memory.base + 0x30_0000

    def start(self, ring_log2: int = 3, record_log2: int = 3, irqs: int = ALL_IRQS) -> None:
        """Bring-up after reset: both rings on, interrupts enabled."""
        self.ring_log2 = ring_log2
        for base, low, control, log2 in (
            (self.ring, csr.RING_BASE_LO, csr.RING_CTRL, ring_log2),
            (self.records, csr.CPL_BASE_LO, csr.CPL_CTRL, record_log2),
        ):
            self.backend.write_csr(low, base & 0xFFFF_FFFF)
            self.backend.write_csr(low + 4, base >> 32)
            self.backend.write_csr(control, log2 << 8 | 1)
        self.backend.write_csr(csr.IRQ_ENABLE, irqs)
        self.tail = 0

    def ring_packets(self, *packets: Packet) -> None:
        """Put packets into the ring and ring the doorbell once. The caller minds the room."""
        for packet in packets:
            self.backend.write_memory(self.ring + 64 * self.tail, packet.pack())
            self.tail = (self.tail + 1) % (1 << self.ring_log2)
        self.backend.write_csr(csr.RING_TAIL, self.tail)

    def load_registers(self, packet: Packet) -> None:
        """Fill CMD_WORD without pushing."""
        data = packet.pack()
        for at in range(0, 64, 4):
            self.backend.write_csr(csr.CMD_WORD + at, int.from_bytes(data[at : at + 4], "little"))

    def push(self, packet: Packet) -> None:
        """Queue a packet through the command registers."""
        self.load_registers(packet)
        self.backend.write_csr(csr.CMD_PUSH, 1)

    def wait(self) -> int:
        """The next interrupt's status bits, cleared."""
        irq = self.backend.wait_interrupt(WAIT_S)
        self.backend.write_csr(csr.IRQ_STATUS, irq)
        return irq

    def wait_until(self, completed: int) -> None:
        """Sleep on interrupts until so many commands have finished since reset."""
        while self.backend.read_csr(csr.COMPLETED) != completed:
            self.wait()

    def state(self) -> DeviceState:
        return DeviceState(self.backend.read_csr(csr.STATUS) & csr.STATUS_STATE_MASK)

    def record(self, slot: int) -> CompletionRecord:
        return CompletionRecord.unpack(self.backend.read_memory(self.records + 64 * slot, 64))

    def word(self, address: int) -> int:
        return int.from_bytes(self.backend.read_memory(address, 4), "little")

    def acknowledge(self) -> None:
        """Leave the error state, and wait until it has happened."""
        self._control(csr.CTRL_ERROR_ACK_MASK)

    def soft_reset(self) -> None:
        self._control(csr.CTRL_SOFT_RESET_MASK)

    def _control(self, bits: int) -> None:
        self.backend.write_csr(csr.CTRL, bits)
        for _ in range(100_000):
            if not self.backend.read_csr(csr.CTRL) & bits:
                return
        raise AssertionError(f"CTRL {bits:#x} never cleared")


def nop(irq: bool = False) -> Packet:
    return Packet(Opcode.NOP, flag_word(DType.FP32, DType.FP32, *(["IRQ"] if irq else [])))


def sync(address: int, value: int) -> Packet:
    return Packet(Opcode.SYNC, 0, dst=address, params=(value,))


def fill_bytes(address: int, count: int, value: int = 0) -> Packet:
    flags = flag_word(DType.FP32, DType.INT8)
    return Packet(Opcode.FILL, flags, dst=address, params=(count, value))


def reset_values(config: HwConfig) -> dict[int, int]:
    """Offset → value of every register after reset, except the running cycle count."""
    values = dict.fromkeys(csr.REGISTERS, 0)
    values[csr.ID] = DEVICE_ID
    values[csr.VERSION] = ISA_VERSION
    values[csr.PROGRAM_RAM] = PROGRAM_RAM | PROGRAM_RAM_LINES << 16
    values[csr.PROGRAM_DIGEST_LO] = BOOT_DIGEST & 0xFFFF_FFFF
    values[csr.PROGRAM_DIGEST_HI] = BOOT_DIGEST >> 32
    values[csr.CONFIG] = config.array_size | config.bus_bits << 8 | config.fma_latency << 24
    values[csr.STATUS] = 1 << 8 | 3 << 10
    del values[csr.CYCLE_LO], values[csr.CYCLE_HI]
    return values


def check_reset_values(host: Host) -> None:
    expected = reset_values(CONFIG)
    assert len(expected) == len(csr.OFFSETS) + 15 + 3 + 3 + 15 - 2  # arrays; the running cycle
    found = {offset: host.backend.read_csr(offset) for offset in expected}
    wrong = {
        hex(offset): hex(found[offset]) for offset in found if found[offset] != expected[offset]
    }
    assert not wrong, f"registers not at their reset values: {wrong}"
