# SPDX-License-Identifier: Apache-2.0
"""What every backend promises of the second queue (docs/isa.md, "Two queues")."""

from __future__ import annotations

import pytest
from backend_host import Host, executes, fill_bytes, nop, sync

from driver.backend.queues import SECOND_QUEUE
from driver.isa import CompletionRecord, DeviceState, ErrorCode, Packet, csr

_COMPLETE, _EMPTY = csr.IRQ_STATUS_COMPLETE1_MASK, csr.IRQ_STATUS_EMPTY1_MASK
_ENTRIES = 8


class Second:
    """The second ring of a host, its records behind those of the first."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.ring, self.records = host.ring + 0x8_0000, host.records + 0x8_0000
        self.tail = 0
        for low, control, base in (
            (SECOND_QUEUE.base, SECOND_QUEUE.control, self.ring),
            (SECOND_QUEUE.records, SECOND_QUEUE.records_control, self.records),
        ):
            host.backend.write_csr(low, base & 0xFFFF_FFFF)
            host.backend.write_csr(low + 4, base >> 32)
            host.backend.write_csr(control, 3 << csr.RING_CTRL_LOG2_ENTRIES_LSB | 1)
        host.backend.write_csr(csr.IRQ_ENABLE, 0x1F)

    def put(self, *packets: Packet) -> None:
        """Into the ring, without the doorbell."""
        for packet in packets:
            self._host.backend.write_memory(self.ring + 64 * self.tail, packet.pack())
            self.tail = (self.tail + 1) % _ENTRIES

    def doorbell(self) -> None:
        self._host.backend.write_csr(SECOND_QUEUE.tail, self.tail)

    def record(self, seq: int) -> CompletionRecord:
        address = self.records + 64 * (seq % _ENTRIES)
        return CompletionRecord.unpack(self._host.backend.read_memory(address, 64))


def wait_until(host: Host, first: int, second: int) -> int:
    """Until so many commands of both have finished; all interrupts meanwhile."""
    irqs = 0
    while (host.backend.read_csr(csr.COMPLETED), host.backend.read_csr(csr.COMPLETED1)) != (
        first,
        second,
    ):
        irqs |= host.wait()
    return irqs | host.backend.read_csr(csr.IRQ_STATUS)


def test_it_has_its_own_numbers_records_and_interrupts(host: Host) -> None:
    host.start()
    second = Second(host)
    for batch in range(3):
        second.put(*(sync(host.data + 64 * index, index) for index in range(4)), nop(irq=True))
        second.doorbell()
        irqs = wait_until(host, 0, 5 * batch + 5)
        assert irqs == _COMPLETE | _EMPTY
        host.backend.write_csr(csr.IRQ_STATUS, irqs)
        for index in range(5):
            record = second.record(5 * batch + index)
            assert (record.seq, record.status) == (5 * batch + index, ErrorCode.NONE)
        assert host.backend.read_csr(csr.RING1_HEAD) == (5 * batch + 5) % _ENTRIES
    assert host.backend.read_csr(csr.RING_HEAD) == 0
    assert host.backend.read_csr(csr.COMMANDS_LO) == 15
    assert host.state() == DeviceState.DONE


@executes
def test_both_run_and_each_keeps_its_order(host: Host) -> None:
    host.start()
    second = Second(host)
    first_at, second_at = host.data, host.data + 0x1000
    second.put(*(fill_bytes(second_at, 64 - 8 * index, 0x80 + index) for index in range(7)))
    host.ring_packets(*(fill_bytes(first_at, 64 - 8 * index, 0x10 + index) for index in range(7)))
    second.doorbell()
    wait_until(host, 7, 7)
    for address, value in ((first_at, 0x10), (second_at, 0x80)):
        expected = b"".join(bytes([value + index]) * 8 for index in (6, 6, 5, 4, 3, 2, 1, 0))
        assert host.backend.read_memory(address, 64) == expected


@executes
def test_a_failure_stops_both_and_names_its_queue(host: Host) -> None:
    host.start()
    second = Second(host)
    second.put(nop(), Packet(77), nop())
    second.doorbell()
    while not host.wait() & csr.IRQ_STATUS_ERROR_MASK:
        pass
    assert host.state() == DeviceState.ERROR
    expected = ErrorCode.BAD_OPCODE | 1 << csr.ERROR_CODE_QID_LSB
    assert host.backend.read_csr(csr.ERROR_CODE) == expected
    assert host.backend.read_csr(csr.ERROR_SEQ) == 1
    assert host.backend.read_csr(csr.COMPLETED1) == 2
    assert second.record(1).status == ErrorCode.BAD_OPCODE
    host.ring_packets(nop())
    for _ in range(20):
        assert host.backend.read_csr(csr.COMPLETED) == 0
    host.acknowledge()
    assert host.backend.read_csr(csr.ERROR_CODE) == 0
    assert host.backend.read_csr(csr.RING1_HEAD) == second.tail
    assert host.backend.read_csr(csr.RING_HEAD) == host.tail
    second.put(nop())
    second.doorbell()
    wait_until(host, 0, 3)


@pytest.mark.parametrize("both", [False, True])
def test_a_reset_disables_it(host: Host, both: bool) -> None:
    host.start()
    second = Second(host)
    second.put(nop())
    second.doorbell()
    if both:
        host.ring_packets(nop())
    wait_until(host, int(both), 1)
    host.soft_reset()
    for offset in (csr.RING1_CTRL, csr.RING1_TAIL, csr.RING1_HEAD, csr.COMPLETED1, csr.CPL1_CTRL):
        assert host.backend.read_csr(offset) == 0, hex(offset)
