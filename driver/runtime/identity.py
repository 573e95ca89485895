# SPDX-License-Identifier: Apache-2.0
"""Whether the hardware behind a backend is the one that a configuration and this driver mean."""

from __future__ import annotations

from driver.backend import Backend
from driver.config import HwConfig
from driver.errors import InfrastructureError
from driver.isa import DEVICE_ID, ISA_VERSION, csr
from driver.isa.programs import BOOT_DIGEST


def check_identity(backend: Backend, config: HwConfig) -> None:
    """InfrastructureError, in one line, with what is another: device, version, build, programs."""
    _expect(backend, config, csr.ID, DEVICE_ID)
    version = backend.read_csr(csr.VERSION)
    if version != ISA_VERSION:
        raise InfrastructureError(
            f"the device has instruction set {_version(version)}, "
            f"expected {_version(ISA_VERSION)}, that of this driver"
        )
    _expect(
        backend,
        config,
        csr.CONFIG,
        config.array_size << csr.CONFIG_ARRAY_SIZE_LSB
        | config.bus_bits << csr.CONFIG_BUS_BITS_LSB
        | config.fma_latency << csr.CONFIG_FMA_LATENCY_LSB,
    )
    low, high = backend.read_csr(csr.PROGRAM_DIGEST_LO), backend.read_csr(csr.PROGRAM_DIGEST_HI)
    if high << 32 | low != BOOT_DIGEST:
        raise InfrastructureError(
            f"the device has booted with other vector programs: digest {high << 32 | low:016x}, "
            f"expected {BOOT_DIGEST:016x}, that of this driver: run make gen after a change of "
            "driver/isa/programs, or build both from the same sources"
        )


def loadable_lines(backend: Backend) -> range:
    """The lines of program memory that LOAD can write."""
    found = backend.read_csr(csr.PROGRAM_RAM)
    first = (found & csr.PROGRAM_RAM_FIRST_MASK) >> csr.PROGRAM_RAM_FIRST_LSB
    count = (found & csr.PROGRAM_RAM_LINES_MASK) >> csr.PROGRAM_RAM_LINES_LSB
    return range(first, first + count)


def _expect(backend: Backend, config: HwConfig, offset: int, value: int) -> None:
    found = backend.read_csr(offset)
    if found != value:
        raise InfrastructureError(
            f"not the device of configuration {config.name}: register {offset:#05x} "
            f"reads {found:#x}, expected {value:#x}"
        )


def _version(word: int) -> str:
    return f"{word >> 16}.{word & 0xFFFF}"
