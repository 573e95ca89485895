# SPDX-License-Identifier: Apache-2.0
"""The second command queue of a Device: packets beside those of `submit`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from driver.backend import open_backend
from driver.config import load_config
from driver.errors import DeviceFault, InfrastructureError, InputError
from driver.isa import DType, ErrorCode, Opcode, Packet, flag_word
from driver.runtime import Device
from driver.runtime.vector_programs import FIRST_PLACEHOLDER

_ENTRIES = 8
_LIMIT_S = 60.0


@pytest.fixture
def device() -> Iterator[Device]:
    config = load_config(Path("sim_config.yaml"), "small")
    with Device(open_backend("cmodel", config), config, ring_entries=_ENTRIES) as npu:
        yield npu


def fill(address: int, count: int, value: int) -> Packet:
    word = flag_word(DType.FP32, DType.INT8)
    return Packet(Opcode.FILL, word, 0, 0, address, (count, value))


def copy(source: int, result: int, count: int) -> Packet:
    return Packet(Opcode.COPY, flag_word(DType.INT8, DType.INT8), source, 0, result, (count,))


def test_both_queues_run_and_software_orders_what_they_share(device: Device) -> None:
    queue = device.second_queue(_ENTRIES)
    assert device.second_queue() is queue
    first, second = (device.alloc(64).address for _ in range(2))
    for batch in range(5):  # the rings wrap
        queue.push([fill(second, 64, 10 + batch), nop := Packet(Opcode.NOP), nop])
        ended = device.submit([fill(first, 64, 20 + batch)] * 10)
        assert [record.seq for record in ended] == list(range(11 * batch, 11 * batch + 10))
        records = queue.wait(_LIMIT_S)
        assert [record.seq for record in records] == list(range(3 * batch, 3 * batch + 3))
        assert [record.opcode for record in records] == [Opcode.FILL, Opcode.NOP, Opcode.NOP]
        assert np.all(device.download(second, (64,), np.uint8) == 10 + batch)
        device.submit([copy(second, first, 32)])  # what the second queue has written
        found = device.download(first, (64,), np.uint8)
        assert found.tolist() == [10 + batch] * 32 + [20 + batch] * 32
    assert queue.wait(_LIMIT_S) == []


def test_it_waits_for_commands_that_nothing_else_lets_finish(device: Device) -> None:
    queue = device.second_queue(_ENTRIES)
    queue.push([Packet(Opcode.NOP)] * 3)
    queue.push([Packet(Opcode.NOP)] * 4)
    assert len(queue.wait(_LIMIT_S)) == 7
    assert device.submit([Packet(Opcode.NOP)])[0].status == ErrorCode.NONE


def test_a_failure_stops_both_until_recover(device: Device) -> None:
    queue = device.second_queue(_ENTRIES)
    bad = Packet(77)
    for _ in range(2):
        queue.push([Packet(Opcode.NOP), bad, Packet(Opcode.NOP)])
        with pytest.raises(DeviceFault) as fault:
            queue.wait(_LIMIT_S)
        assert (fault.value.code, fault.value.packet, fault.value.number) == (
            ErrorCode.BAD_OPCODE,
            bad,
            1,
        )
        for call in (lambda: queue.push([]), lambda: device.submit([Packet(Opcode.NOP)])):
            with pytest.raises(DeviceFault) as again:
                call()
            assert again.value is fault.value
        device.recover()
    queue.push([bad])
    with pytest.raises(DeviceFault) as fault:  # of the other queue's command
        device.submit([Packet(Opcode.NOP)] * 30)
    assert fault.value.packet == bad
    with pytest.raises(DeviceFault):
        queue.wait(_LIMIT_S)
    device.reset()
    with pytest.raises(DeviceFault) as fault:
        device.submit([bad])
    with pytest.raises(DeviceFault) as again:
        queue.push([])
    assert again.value is fault.value
    device.recover()
    queue.push([Packet(Opcode.NOP)])
    assert [record.seq for record in queue.wait(_LIMIT_S)] == [0]


def test_what_a_reset_drops_is_said_once(device: Device) -> None:
    queue = device.second_queue(_ENTRIES)
    for drop in (device.recover, device.reset):
        queue.push([Packet(77), Packet(Opcode.NOP)])
        with pytest.raises(DeviceFault):
            device.submit([Packet(Opcode.NOP)] * 30)
        drop()
        with pytest.raises(InfrastructureError, match="a reset dropped 2 packets"):
            queue.wait(_LIMIT_S)
        queue.push([Packet(Opcode.NOP)])
        assert len(queue.wait(_LIMIT_S)) == 1


def test_what_it_refuses(device: Device) -> None:
    queue = device.second_queue(_ENTRIES)
    with pytest.raises(InputError, match="at most 7 more"):
        queue.push([Packet(Opcode.NOP)] * _ENTRIES)
    with pytest.raises(InputError, match="a boot program's line"):
        queue.push([Packet(Opcode.VECTOR, params=(FIRST_PLACEHOLDER,))])
    assert queue.wait(_LIMIT_S) == []
