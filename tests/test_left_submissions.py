# SPDX-License-Identifier: Apache-2.0
"""After a submission or a reset that was left before its end: what the device refuses, and which
memory it gives to nobody."""

from __future__ import annotations

import numpy as np
import pytest
from backend_host import CONFIG, Host, executes, nop, sync

from driver.errors import (
    AddressError,
    DeviceFault,
    InfrastructureError,
    SimulatorTimeout,
)
from driver.isa import Packet
from driver.runtime.device import Device
from driver.runtime.ring import CommandRing
from driver.runtime.second_queue import SecondQueue
from golden.backend import CmodelBackend


@pytest.fixture
def device(host: Host) -> Device:
    return Device(host.backend, CONFIG, ring_entries=4)


class Impatient(CmodelBackend):
    """Gives up its next wait for an interrupt."""

    error: BaseException | None = None

    def wait_interrupt(self, timeout_s: float) -> int:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return super().wait_interrupt(timeout_s)


@pytest.mark.parametrize("error", [SimulatorTimeout("no interrupt"), KeyboardInterrupt()])
def test_after_a_submission_that_was_left_the_device_has_to_be_reset(error: BaseException) -> None:
    """Its commands would be taken for those of the next submission."""
    backend = Impatient(CONFIG, threads=1)
    with Device(backend, CONFIG) as device:
        place = device.alloc(64).address
        backend.error = error
        with pytest.raises(type(error)):
            device.submit([sync(place, 1)] * 20)
        for again in (lambda: device.submit([sync(place, 2)]), device.recover):
            with pytest.raises(InfrastructureError, match="commands may still run that were left"):
                again()
        device.reset()
        device.submit([sync(place, 3)])
        assert device.download(place, (1,), np.uint32)[0] == 3


def test_memory_that_late_commands_may_write_goes_to_nobody() -> None:
    backend = Impatient(CONFIG, threads=1)
    with Device(backend, CONFIG) as device:
        before = device.memory_report()
        place = device.alloc(64)
        backend.error = SimulatorTimeout("no interrupt")
        with pytest.raises(SimulatorTimeout):
            device.submit([sync(place.address, 1)])
        device.free(place)
        with pytest.raises(AddressError):
            device.free(place)
        other = device.upload(np.arange(16, dtype=np.uint32))
        assert other.address != place.address
        device.reset()
        assert device.alloc(64).address == place.address
        device.free(place)
        device.free(other)
        assert [use.used_bytes for use in device.memory_report()] == [
            use.used_bytes for use in before
        ]


def test_a_reset_that_was_interrupted_has_to_be_repeated(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CommandRing, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            device.reset()
    with pytest.raises(InfrastructureError, match="a reset that did not end"):
        device.submit([nop()])
    device.reset()
    assert len(device.submit([nop()])) == 1


def test_what_the_second_queue_may_still_write_goes_to_no_other(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = device.second_queue(8)
    place = device.alloc(64)
    queue.push([sync(place.address, 1)])

    def never(*_: object) -> None:
        raise SimulatorTimeout("no interrupt")

    with monkeypatch.context() as patch:
        patch.setattr(SecondQueue, "_until_done", never)
        with pytest.raises(SimulatorTimeout):
            queue.wait(1.0)
    device.free(place)
    assert device.alloc(64).address != place.address
    queue.wait(60.0)
    assert device.alloc(64).address == place.address


@executes
def test_a_fault_that_is_raised_again_does_not_grow(device: Device) -> None:
    with pytest.raises(DeviceFault):
        device.submit([Packet(0x7F)])
    lengths = set()
    for _ in range(20):
        with pytest.raises(DeviceFault) as caught:
            device.submit([nop()])
        lengths.add(len(caught.traceback))
    assert len(lengths) == 1
