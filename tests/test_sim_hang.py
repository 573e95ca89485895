# SPDX-License-Identifier: Apache-2.0
"""A device without progress is told within its limit of cycles; one that is only slow is not."""

from __future__ import annotations

import pytest
from backend_host import sync
from sim_host import CONFIG, ID, open_standin, start_copy

from driver.backend.ports import describe
from driver.errors import DeviceHung, Standstill, SubmittedCommand
from driver.isa import csr
from driver.runtime.device import Device
from golden.backend import CmodelBackend

HANG_CYCLES = CONFIG.timeouts.hang_cycles
LOOK = 1024  # the simulator looks for progress after so many cycles
SLOWEST = 0xFFFF  # the longest latency of the DRAM


def test_no_interrupt_and_no_progress_is_a_hang() -> None:
    with open_standin() as backend:
        before = backend.cycle
        with pytest.raises(DeviceHung, match="no interrupt") as caught:
            backend.wait_interrupt(600)
        at = caught.value.standstill
        assert HANG_CYCLES <= at.quiet_cycles < HANG_CYCLES + 2 * LOOK
        # Twice the limit: only the second look can tell that nothing moved since the first.
        assert at.cycle - before < 2 * (HANG_CYCLES + 2 * LOOK)
        assert (at.state, at.completed, at.ports) == ("IDLE", 0, ())
        assert backend.read_csr(ID) == 0x4E50_5530


def test_slow_memory_is_no_hang() -> None:
    with open_standin() as backend:
        backend.set_dram(SLOWEST)
        start_copy(backend, 0x10_0000, 0x1000_0000, 1)
        before = backend.cycle
        assert backend.wait_interrupt(600) == 1
        assert backend.cycle - before > SLOWEST


def test_what_a_device_waits_for_is_named() -> None:
    timeouts = CONFIG.timeouts.model_copy(update={"hang_cycles": SLOWEST // 4})
    config = CONFIG.model_copy(update={"timeouts": timeouts})
    with open_standin(config=config) as backend:
        backend.set_dram(SLOWEST)
        start_copy(backend, 0x10_0000, 0x1000_0000, 1)
        with pytest.raises(DeviceHung) as caught:
            backend.wait_interrupt(600)
        assert caught.value.standstill.ports == ("m_axi: 1 open read, 1 open write",)


@pytest.mark.parametrize(
    ("signals", "texts"),
    [
        ((0, 0, 0), ()),
        ((1 << 13, 0, 0), ("m_axi: AR offered and not accepted",)),
        (
            (0b00110, 2, 1 << 16),
            (
                "s_axil: W offered and not accepted, B offered and not accepted, 2 open reads",
                "s_axi: 1 open write",
            ),
        ),
    ],
)
def test_ports_are_described(signals: tuple[int, int, int], texts: tuple[str, ...]) -> None:
    assert describe(*signals) == texts


class Stuck(CmodelBackend):
    """Never ends its second command, nor a reset once `reset_hangs` is set."""

    reset_hangs = False

    def wait_interrupt(self, timeout_s: float) -> int:
        del timeout_s
        raise DeviceHung("no interrupt", Standstill(1000, 500, (), "BUSY", 1))

    def read_csr(self, offset: int) -> int:
        if self.reset_hangs and offset == csr.CTRL:
            return csr.CTRL_SOFT_RESET_MASK
        return super().read_csr(offset)


def test_a_hang_names_the_command_that_does_not_end() -> None:
    packets = [sync(0x1000 * index, index) for index in range(1, 4)]
    with Device(Stuck(CONFIG), CONFIG) as device:
        with pytest.raises(DeviceHung, match=r"in command 1 \(packet 1 of 3, ") as caught:
            device.submit(packets)
        command = caught.value.command
        assert command == SubmittedCommand(seq=1, index=1, count=3, packet=packets[1])
        assert caught.value.exit_code == 1


def test_a_reset_that_does_not_end_is_a_hang() -> None:
    with Device(Stuck(CONFIG), CONFIG) as device:
        device.backend.reset_hangs = True  # type: ignore[attr-defined]
        with pytest.raises(DeviceHung, match=r"CTRL still reads 0x1"):
            device.reset()
