# SPDX-License-Identifier: Apache-2.0
"""Device and rings: many packets through few slots, faults, recovery, arrays in memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from backend_host import CONFIG, Host, executes, fill_bytes, nop, sync

from driver.backend import InspectableBackend, open_backend
from driver.backend.accesses import perform
from driver.backend.shared_memory import FaultRange
from driver.errors import (
    AddressError,
    DeviceFault,
    InfrastructureError,
    InputError,
    OutOfMemory,
    SimulatorTimeout,
)
from driver.isa import CompletionRecord, DeviceState, ErrorCode, Opcode, Packet, csr
from driver.runtime.device import Device
from driver.runtime.ring import CommandRing, CompletionRing

Submit = Callable[[Device, list[Packet]], list[CompletionRecord]]
WAYS: list[Submit] = [Device.submit, Device.submit_registers]


@pytest.fixture
def device(host: Host) -> Device:
    return Device(host.backend, CONFIG, ring_entries=4)


@pytest.fixture
def npu_host() -> Iterator[Host]:
    backend = open_backend("cmodel", CONFIG)
    yield Host(backend, CONFIG)
    backend.close()


ways = pytest.mark.parametrize("submit", WAYS, ids=["ring", "registers"])


# ---------------------------------------------------------------------- submit
@ways
@pytest.mark.parametrize("entries", [2, 4, 16])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 33])
def test_any_number_of_packets_completes_in_order(
    host: Host, submit: Submit, entries: int, count: int
) -> None:
    device = Device(host.backend, CONFIG, ring_entries=entries)
    packets = [nop(irq=index % 3 == 0) if index % 2 else sync(0, index) for index in range(count)]
    for first in (0, count):
        records = submit(device, packets)
        assert [record.seq for record in records] == list(range(first, first + count))
        assert [record.opcode for record in records] == [packet.opcode for packet in packets]
        assert {record.status for record in records} <= {ErrorCode.NONE}


def test_ring_and_window_share_one_sequence(device: Device) -> None:
    rng = random.Random(3)
    seqs: list[int] = []
    for _ in range(20):
        records = rng.choice(WAYS)(device, [nop()] * rng.randrange(9))
        seqs += [record.seq for record in records]
    assert seqs == list(range(len(seqs)))
    assert len(seqs) > 50


@executes
@ways
def test_every_packet_executes_once_and_in_order(device: Device, submit: Submit) -> None:
    base = device.alloc(4 * 50).address
    packets = [sync(base + 4 * (index // 2), index) for index in range(100)]
    submit(device, packets)
    found = device.download(base, (50,), np.uint32)
    assert found.tolist() == list(range(1, 100, 2))


def test_a_doorbell_comes_after_its_packets(host: Host) -> None:
    """Packets are in memory when the tail moves, on both sides of the wrap."""
    log: list[tuple[str, int, int]] = []

    class Spy:
        def read_csr(self, offset: int) -> int:
            return host.backend.read_csr(offset)

        def write_csr(self, offset: int, value: int) -> None:
            log.append(("csr", offset, value))
            host.backend.write_csr(offset, value)

        def write_memory(self, address: int, data: bytes) -> None:
            log.append(("memory", address, len(data)))
            host.backend.write_memory(address, data)

        def __getattr__(self, name: str) -> object:
            return getattr(host.backend, name)

    spy = Spy()
    device = Device(spy, CONFIG, ring_entries=4)  # type: ignore[arg-type]
    device.submit([nop()] * 2)
    log.clear()
    device.submit([nop()] * 3)
    ring = CONFIG.memory.regions.activations.base
    doorbell = ("csr", csr.RING_TAIL, 1)
    assert log[:3] == [("memory", ring + 128, 128), ("memory", ring, 64), doorbell]
    assert log.count(doorbell) == 1


def test_a_full_ring_takes_nothing(host: Host) -> None:
    host.start(ring_log2=2)
    ring = CommandRing(host.backend, host.ring, 4)
    ring.start()
    host.backend.write_csr(csr.RING_CTRL, 2 << 8)
    assert ring.push(memoryview(nop().pack() * 9)) == 3
    assert ring.push(memoryview(nop().pack() * 9)) == 0
    assert ring.push(memoryview(b"")) == 0
    assert host.backend.read_csr(csr.COMPLETED) == 0
    host.backend.write_csr(csr.RING_CTRL, 2 << 8 | 1)
    host.wait_until(3)
    assert ring.push(memoryview(nop().pack() * 9)) == 3
    host.wait_until(6)


def test_a_record_of_another_command_is_noticed(host: Host) -> None:
    host.start()
    completions = CompletionRing(host.backend, host.records, 8)

    def read(first_seq: int, count: int) -> list[CompletionRecord]:
        found = perform(host.backend, completions.reads(first_seq, count))
        return completions.records(first_seq, b"".join(found))

    host.ring_packets(nop(), nop())
    host.wait_until(2)
    assert [record.seq for record in read(0, 2)] == [0, 1]
    with pytest.raises(InfrastructureError, match="completion record of command 8"):
        read(8, 1)
    with pytest.raises(InfrastructureError, match="records from 8 on: 4008636142 is not a valid"):
        completions.records(8, b"\xee" * 64)


@pytest.mark.parametrize("entries", [0, -4, 1, 3, 1 << 17])
def test_ring_sizes_that_the_device_cannot_have_are_refused(host: Host, entries: int) -> None:
    with pytest.raises(InputError, match="ring_entries: got"):
        Device(host.backend, CONFIG, ring_entries=entries)


# ---------------------------------------------------------------------- faults
@executes
@ways
@pytest.mark.parametrize("before", [0, 1, 2, 3, 7])
def test_a_fault_names_code_sequence_and_packet(
    device: Device, submit: Submit, before: int
) -> None:
    device.submit([nop()] * 5)
    word = device.upload(np.zeros(1, np.uint32)).address
    bad = Packet(Opcode.SYNC, 0, dst=word + 2, params=(1,))
    packets = [nop()] * before + [bad] + [sync(word, 0xDEAD)] * 3
    with pytest.raises(DeviceFault) as caught:
        submit(device, packets)
    fault = caught.value
    assert (fault.code, fault.seq, fault.packet) == (ErrorCode.MISALIGNED, 5 + before, bad)
    assert "MISALIGNED (address not aligned" in str(fault)
    assert "\n" not in str(fault)
    with pytest.raises(DeviceFault) as again:
        submit(device, [nop()])
    assert again.value is fault

    device.recover()
    assert device.download(word, (1,), np.uint32)[0] == 0
    assert device.backend.read_csr(csr.STATUS) & 3 == DeviceState.IDLE
    records = submit(device, [nop(), sync(word, 7)] * 4)
    assert [record.seq for record in records] == list(range(6 + before, 14 + before))
    assert device.download(word, (1,), np.uint32)[0] == 7


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_command_that_fails_while_its_predecessor_is_read_is_noticed(
    npu_host: Host, after: int
) -> None:
    """COMPLETED counts it, although the interrupt that was waited for came before."""
    bad = Packet(Opcode.SYNC, 0, dst=npu_host.data + 2, params=(1,))
    packets = [nop(irq=True), nop(), nop(), nop()]
    packets[after] = bad

    class Fast:
        """A device on which three commands end before the host reads COMPLETED."""

        def __getattr__(self, name: str) -> object:
            return getattr(npu_host.backend, name)

        def read_csr(self, offset: int) -> int:
            for _ in range(3 * (offset == csr.COMPLETED)):
                npu_host.backend.read_csr(csr.ID)
            return npu_host.backend.read_csr(offset)

    device = Device(Fast(), CONFIG, ring_entries=8)
    with pytest.raises(DeviceFault) as caught:
        device.submit(packets)
    assert (caught.value.seq, caught.value.packet) == (after, bad)


@executes
def test_reset_after_a_fault_starts_the_sequence_anew(device: Device) -> None:
    with pytest.raises(DeviceFault):
        device.submit([nop(), Packet(10)])
    device.reset()
    assert [record.seq for record in device.submit([nop()] * 9)] == list(range(9))


def test_a_fault_in_the_ring_itself_is_reported_and_recovered(device: Device) -> None:
    device.submit([nop()] * 2)
    ring = CONFIG.memory.regions.activations.base
    backend = device.backend
    backend.set_faults([FaultRange(ring + 128, ring + 192)])  # type: ignore[attr-defined]
    with pytest.raises(DeviceFault, match="BUS_READ") as caught:
        device.submit([nop()] * 2)
    assert caught.value.seq == 2
    backend.set_faults([])  # type: ignore[attr-defined]
    device.recover()
    assert [record.seq for record in device.submit([nop()] * 2)] == [3, 4]


def test_a_timeout_says_which_packet_was_waited_for(device: Device) -> None:
    device.submit([nop()] * 3)
    device.backend.write_csr(csr.IRQ_ENABLE, 0)
    with pytest.raises(SimulatorTimeout, match=r"command 3 \(packet 0 of 2, Packet"):
        device.submit([nop(), nop()], timeout_s=0.01)


def test_another_configurations_device_is_refused(host: Host) -> None:
    other = CONFIG.model_copy(update={"array_size": 32})
    with pytest.raises(InfrastructureError, match="not the device of configuration small"):
        Device(host.backend, other)


# ---------------------------------------------------------------------- arrays
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint16, np.int8, np.int32])
def test_arrays_come_back_dense_whatever_their_strides(device: Device, dtype: type) -> None:
    full = np.random.default_rng(1).integers(-100, 100, (6, 8, 10)).astype(dtype)
    compared = 0
    for view in (
        full,
        full.T,
        full[::2, 1:, ::-3],
        full[1, 2],
        full[1, 2, ::3],
        full[1, 2, 3:4].reshape(()),
    ):
        buffer = device.upload(view, "weights")
        assert buffer.address % 64 == 0
        found = device.download(buffer.address, view.shape, dtype)
        assert found.tobytes() == np.ascontiguousarray(view).tobytes()
        found[...] = 0
        device.free(buffer)
        compared += view.size
    assert compared > 1000


PROGRAM_IMAGES = 9 * 4096
"""Bytes for images of loaded programs, on pages of their own."""


def test_memory_is_reported_and_refused_by_name(device: Device) -> None:
    before = {use.region: use.used_bytes for use in device.memory_report()}
    assert before == {"weights": 0, "activations": 2 * 4 * 64 + PROGRAM_IMAGES}
    buffer = device.alloc(1000, "weights")
    assert device.memory_report()[0].used_bytes == 1024
    with pytest.raises(OutOfMemory, match="weights: got 268435456 bytes"):
        device.alloc(256 << 20, "weights")
    device.free(buffer)
    with pytest.raises(AddressError):
        device.free(buffer)
    with pytest.raises(InputError):
        device.upload(np.zeros((0, 3), np.float32))


def test_an_upload_that_fails_leaves_nothing_allocated(
    opened: InspectableBackend, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: int, data: bytes) -> None:
        raise SimulatorTimeout("gone")

    before = device.memory_report()
    monkeypatch.setattr(opened, "write_memory", refuse)
    with pytest.raises(SimulatorTimeout):
        device.upload(np.zeros(4, np.float32))
    assert [use.used_bytes for use in device.memory_report()] == [use.used_bytes for use in before]
    monkeypatch.undo()


def test_closing_a_device_closes_its_backend(host: Host) -> None:
    closed: list[bool] = []
    backend = host.backend

    class Closing:
        def close(self) -> None:
            closed.append(True)

        def __getattr__(self, name: str) -> object:
            return getattr(backend, name)

    with Device(Closing(), CONFIG) as device:  # type: ignore[arg-type]
        device.submit([fill_bytes(0, 1)])
    assert closed == [True]
