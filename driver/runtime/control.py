# SPDX-License-Identifier: Apache-2.0
"""What the control register is asked for, and waiting until the device has done it."""

from __future__ import annotations

import time

from driver.backend import Backend
from driver.config import Timeouts
from driver.errors import DeviceHung, SimulatorTimeout, Standstill
from driver.isa import csr

_PROGRESS = (csr.ACTIVE_CYCLES_LO, csr.READ_BEATS_LO, csr.WRITE_BEATS_LO, csr.COMPLETED)
"""Registers of which one moves as long as a command does."""
_CYCLES_PER_POLL = 4
"""At least so many cycles pass in the read of a register."""


def request(backend: Backend, limits: Timeouts, control: int) -> None:
    """Set bits of CTRL and wait for the device to clear them. DeviceHung when it makes no progress
    meanwhile; SimulatorTimeout after wait_s."""
    deadline = time.monotonic() + limits.wait_s
    backend.write_csr(csr.CTRL, control)
    polls, progress = 0, _progress(backend)
    while backend.read_csr(csr.CTRL) & control:
        what = f"CTRL still reads {control:#x}: reset or error_ack hangs"
        if time.monotonic() > deadline:
            raise SimulatorTimeout(what)
        polls += 1
        if polls % (limits.hang_cycles // _CYCLES_PER_POLL) == 0:
            last, progress = progress, _progress(backend)
            if last == progress:
                raise DeviceHung(what, Standstill(backend.read_csr(csr.CYCLE_LO)))


def _progress(backend: Backend) -> tuple[int, ...]:
    return tuple(backend.read_csr(offset) for offset in _PROGRESS)
