# SPDX-License-Identifier: Apache-2.0
"""What every backend promises (docs/isa.md) when a command fails, or is dropped by a reset."""

from __future__ import annotations

import random

import pytest
from backend_host import (
    ALL_IRQS,
    CONFIG,
    EMPTY,
    ERROR,
    LONG_BYTES,
    Host,
    check_reset_values,
    executes,
    fill_bytes,
    nop,
    sync,
)

from driver.backend.shared_memory import BusError, FaultRange
from driver.isa import (
    FLAGS,
    Descriptor,
    DeviceState,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    csr,
    flag_word,
)
from driver.isa.image import PROGRAM_RAM

INDEXED = {
    0x1100: (0x1400, DType.FP32, 4),
    0x1140: (0x1500, DType.INT32, 2),
    0x1180: (0, DType.FP32, 2),
}
"""Descriptors of a GATHER: offset of each, then offset of its data, type and size."""
INDICES = (1).to_bytes(4, "little") + (4).to_bytes(4, "little")
"""The second is not below the table's size."""


def gather(data: int) -> Packet:
    """dst[i] = table[index[i]] with an index too large, by the descriptors of INDEXED."""
    names = ("SRC1_DESC", "SRC2_DESC", "DST_DESC")
    flags = flag_word(DType.FP32, DType.FP32, *names) | DType.INT32 << FLAGS["SRC2_DTYPE"].lsb
    return Packet(Opcode.GATHER, flags, *(data + at for at in INDEXED))


def write_indexed(host: Host) -> None:
    """The descriptors and indices of `gather`."""
    for at, (base, dtype, size) in INDEXED.items():
        descriptor = Descriptor(host.data + base, dtype, (size,), (1,))
        host.backend.write_memory(host.data + at, descriptor.pack())
    host.backend.write_memory(host.data + 0x1500, INDICES)


def faulty_packets(data: int) -> dict[ErrorCode, tuple[Packet, ...]]:
    """Error code → packets that must be refused with it. Descriptors live at data + 0x1000."""
    limit = CONFIG.memory.limit
    copy = flag_word(DType.FP32, DType.FP32)
    matmul = flag_word(DType.FP16, DType.FP32)
    bad_descriptor = data + 0x1000
    failing = data + 0x2000
    return {
        ErrorCode.BAD_OPCODE: tuple(Packet(opcode) for opcode in (10, 15, 1 << 16, 1 << 31)),
        ErrorCode.RESERVED_BITS: (
            Packet(Opcode.NOP, 1 << 11),
            Packet(Opcode.FENCE, 0, src1=64),
            Packet(Opcode.NOP, 0, params=(0,) * 7 + (1,)),
            fill_bytes(data, 1, 0x100),
        ),
        ErrorCode.BAD_DTYPE: (
            Packet(Opcode.COPY, copy | 1, data, 0, data + 64, (1,)),
            Packet(Opcode.FILL, 7 << 4, dst=data, params=(1,)),
            Packet(Opcode.FILL, DType.INT64 << 4, dst=data, params=(1,)),
            Packet(Opcode.MATMUL, matmul | 4, data, data, data, (1,) * 4),
        ),
        ErrorCode.BAD_PARAM: (
            fill_bytes(data, 0),
            Packet(Opcode.MATMUL, matmul, data, data, data, (1, 1, 0, 1)),
        ),
        ErrorCode.BAD_DESCRIPTOR: (Packet(Opcode.COPY, copy | 1 << 12, bad_descriptor, 0, data),),
        ErrorCode.MISALIGNED: (
            sync(data + 2, 1),
            Packet(Opcode.COPY, copy, data + 1, 0, data, (1,)),
            Packet(Opcode.COPY, copy | 1 << 12, data + 32, 0, data),
        ),
        ErrorCode.OUT_OF_RANGE: (
            sync(limit, 1),
            fill_bytes(limit - 1, 2),
            fill_bytes((1 << 64) - 1, 2),
        ),
        ErrorCode.BUS_READ: (Packet(Opcode.COPY, copy, failing, 0, data, (16,)),),
        ErrorCode.BUS_WRITE: (sync(failing, 1),),
        ErrorCode.BAD_INDEX: (gather(data),),
        ErrorCode.NOT_LOADED: (
            Packet(Opcode.VECTOR, 0, data, 0, data, (PROGRAM_RAM, 1)),
            Packet(Opcode.VECTOR, FLAGS["OPERAND_LIST"].mask, data, params=(1023, 1)),
        ),
        ErrorCode.BAD_IMAGE: (Packet(Opcode.LOAD, 0, data, params=(PROGRAM_RAM, 2)),),
    }


FAULT_CASES = [
    (code, index) for code, packets in faulty_packets(0).items() for index in range(len(packets))
]


def test_every_error_code_has_a_case() -> None:
    assert {code for code, _ in FAULT_CASES} == set(ErrorCode) - {ErrorCode.NONE}


@executes
@pytest.mark.parametrize(("code", "index"), FAULT_CASES, ids=str)
def test_an_error_stops_the_queue_and_an_acknowledge_recovers(
    host: Host, code: ErrorCode, index: int
) -> None:
    packet = faulty_packets(host.data)[code][index]
    bus_error = code in (ErrorCode.BUS_READ, ErrorCode.BUS_WRITE)
    if bus_error:
        host.backend.set_faults([FaultRange(host.data + 0x2000, host.data + 0x2040)])
    host.start(ring_log2=3, record_log2=3)
    host.backend.write_memory(host.data, random.Random(index).randbytes(0x3000))
    host.backend.write_memory(host.data + 0x1000, b"\xff" * 64)
    write_indexed(host)
    before = bytearray(host.backend.read_memory(host.data, 0x3000))
    host.ring_packets(
        nop(), sync(host.data + 0x800, 0xFEED), packet, sync(host.data, 0xDEAD), nop()
    )
    while not (irq := host.wait()) & ERROR:
        pass
    assert irq & EMPTY == 0

    assert host.state() == DeviceState.ERROR
    assert host.backend.read_csr(csr.ERROR_CODE) == code
    assert host.backend.read_csr(csr.ERROR_SEQ) == 2
    assert host.backend.read_csr(csr.COMPLETED) == 3
    assert [host.record(slot).status for slot in range(3)] == [0, 0, code]
    assert (host.record(2).seq, host.record(2).opcode) == (2, packet.opcode)
    for _ in range(20):
        assert host.state() == DeviceState.ERROR
    before[0x800:0x804] = (0xFEED).to_bytes(4, "little")
    after = host.backend.read_memory(host.data, 0x3000)
    unspecified = bus_error or code is ErrorCode.BAD_INDEX
    hidden = slice(0, 64) if unspecified else slice(0, 0)
    before[hidden] = after[hidden]
    assert after == before

    host.backend.set_faults([])
    host.acknowledge()
    assert host.state() == DeviceState.IDLE
    assert host.backend.read_csr(csr.ERROR_CODE) == 0
    assert host.backend.read_csr(csr.RING_HEAD) == host.tail
    host.ring_packets(packet if bus_error else nop(), sync(host.data, 0xBEEF))
    host.wait_until(5)
    assert host.word(host.data) == 0xBEEF
    assert [host.record(slot).seq for slot in (3, 4)] == [3, 4]
    assert host.state() == DeviceState.DONE


@pytest.mark.parametrize("response", BusError)
def test_a_failing_ring_fetch_is_a_read_error_of_that_command(
    host: Host, response: BusError
) -> None:
    host.start()
    fault = FaultRange(host.ring + 64, host.ring + 128, on_write=False, response=response)
    host.backend.set_faults([fault])
    host.ring_packets(nop(), nop(), nop())
    while not host.wait() & ERROR:
        pass
    assert host.backend.read_csr(csr.ERROR_CODE) == ErrorCode.BUS_READ
    assert host.backend.read_csr(csr.ERROR_SEQ) == 1
    assert host.record(1).status == ErrorCode.BUS_READ


@pytest.mark.parametrize("response", BusError)
def test_a_failing_completion_record_is_a_write_error_of_its_command(
    host: Host, response: BusError
) -> None:
    host.start()
    fault = FaultRange(host.records, host.records + 64, on_read=False, response=response)
    host.backend.set_faults([fault])
    host.ring_packets(nop(), nop())
    while not host.wait() & ERROR:
        pass
    assert host.backend.read_csr(csr.ERROR_CODE) == ErrorCode.BUS_WRITE
    assert host.backend.read_csr(csr.ERROR_SEQ) == 0
    assert host.backend.read_csr(csr.COMPLETED) == 1


@pytest.mark.parametrize(
    ("high_word", "code"),
    [(csr.RING_BASE_HI, ErrorCode.BUS_READ), (csr.CPL_BASE_HI, ErrorCode.BUS_WRITE)],
)
def test_the_high_words_of_the_ring_addresses_count(
    host: Host, high_word: int, code: ErrorCode
) -> None:
    host.start()
    host.backend.write_csr(high_word, 1)
    host.ring_packets(nop())
    assert host.wait() & ERROR
    assert host.backend.read_csr(csr.ERROR_CODE) == code


def test_failing_ranges_beside_the_rings_or_the_other_way_do_no_harm(host: Host) -> None:
    host.start(ring_log2=1, record_log2=1)
    ranges = [
        FaultRange(base + begin, base + begin + 64)
        for base in (host.ring, host.records)
        for begin in (-64, 128)
    ]
    ranges.append(FaultRange(host.ring, host.ring + 128, on_read=False))
    ranges.append(FaultRange(host.records, host.records + 128, on_write=False))
    host.backend.set_faults(ranges)
    for completed in range(1, 5):
        host.ring_packets(nop())
        host.wait_until(completed)
    assert host.state() == DeviceState.DONE


@executes
def test_an_acknowledge_empties_the_window_too(host: Host) -> None:
    host.start()
    host.push(Packet(9))
    host.push(sync(host.data, 0xDEAD))
    while not host.wait() & ERROR:
        pass
    host.backend.write_memory(host.data, bytes(4))
    host.acknowledge()
    assert host.backend.read_csr(csr.STATUS) == DeviceState.IDLE | 1 << 8 | 3 << 10
    host.push(nop())
    host.wait_until(2)
    assert host.word(host.data) == 0


def test_an_acknowledge_without_an_error_drops_nothing(host: Host) -> None:
    host.start()
    host.ring_packets(nop(), nop(), nop())
    host.acknowledge()
    host.wait_until(3)
    assert host.state() == DeviceState.DONE


@executes
def test_soft_reset_leaves_the_error_state(host: Host) -> None:
    host.start()
    host.ring_packets(nop(), Packet(9), sync(host.data, 0xDEAD))
    while not host.wait() & ERROR:
        pass
    host.backend.write_memory(host.data, bytes(4))
    host.soft_reset()
    check_reset_values(host)
    host.start()
    host.ring_packets(nop())
    host.wait_until(1)
    assert host.record(0).seq == 0
    assert host.word(host.data) == 0


def test_soft_reset_drops_what_is_queued(host: Host) -> None:
    host.start(irqs=ALL_IRQS)
    host.ring_packets(fill_bytes(host.data, LONG_BYTES), *[nop()] * 5)
    host.soft_reset()
    check_reset_values(host)
    for _ in range(20):
        assert host.backend.read_csr(csr.COMPLETED) == 0


@executes
def test_dirty_pages_are_those_the_device_wrote(host: Host) -> None:
    host.start()
    host.backend.clear_dirty()
    host.backend.write_memory(host.data + 0x9000, b"host")
    host.ring_packets(fill_bytes(host.data + 4095, 2), sync(host.data + 0x5000, 1))
    host.wait_until(2)
    pages = [host.data, host.data + 0x1000, host.data + 0x5000]
    assert host.backend.dirty_pages() == [host.records, *pages]
    host.backend.clear_dirty()
    assert host.backend.dirty_pages() == []
