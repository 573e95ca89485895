# SPDX-License-Identifier: Apache-2.0
"""What every backend promises (docs/registers.md): registers, memory, queues, interrupts."""

from __future__ import annotations

import random

import pytest
from backend_host import (
    COMPLETE,
    CONFIG,
    EMPTY,
    LONG_BYTES,
    Host,
    check_reset_values,
    executes,
    fill_bytes,
    nop,
    sync,
)

from driver.backend import Feature, open_backend
from driver.errors import AddressError, InputError, RegisterError, SimulatorTimeout
from driver.isa import DeviceState, ErrorCode, Opcode, Packet, csr


# ---------------------------------------------------------------------- opening and registers
def test_unknown_backend_names_those_that_exist() -> None:
    with pytest.raises(InputError, match="backend: got fpga, expected one of null, cmodel, rtl"):
        open_backend("fpga", CONFIG)


def scribble(host: Host) -> None:
    """Leave no writable register, count or queue in its reset state."""
    host.start()
    host.ring_packets(nop(), nop(irq=True))
    host.load_registers(Packet(*range(1, 6), params=tuple(range(8))))
    host.wait_until(2)


def test_registers_take_their_reset_values_at_power_up(host: Host) -> None:
    check_reset_values(host)


def test_hard_reset_restores_every_register(host: Host) -> None:
    scribble(host)
    host.backend.reset()
    check_reset_values(host)


def test_soft_reset_restores_every_register_and_keeps_memory(host: Host) -> None:
    scribble(host)
    host.backend.write_memory(host.data, b"kept")
    host.soft_reset()
    check_reset_values(host)
    assert host.backend.read_memory(host.data, 4) == b"kept"


def test_writable_registers_keep_their_fields_and_nothing_else(host: Host) -> None:
    fields = {
        csr.IRQ_ENABLE: 0x1F,
        csr.RING_BASE_LO: 0xFFFF_FFC0,
        csr.RING_BASE_HI: 0xFFFF_FFFF,
        csr.CPL_BASE_LO: 0xFFFF_FFC0,
        csr.CPL_BASE_HI: 0xFFFF_FFFF,
        csr.CPL_CTRL: 0x1F01,
        csr.RING_TAIL: 0xFFFF,
        csr.RING1_BASE_LO: 0xFFFF_FFC0,
        csr.RING1_BASE_HI: 0xFFFF_FFFF,
        csr.CPL1_BASE_LO: 0xFFFF_FFC0,
        csr.CPL1_CTRL: 0x1F01,
        csr.RING1_TAIL: 0xFFFF,
        **{csr.CMD_WORD + 4 * index: 0xFFFF_FFFF for index in range(16)},
    }
    for offset, mask in fields.items():
        host.backend.write_csr(offset, 0xFFFF_FFFF)
        assert host.backend.read_csr(offset) == mask, hex(offset)


def test_read_only_registers_ignore_writes(host: Host) -> None:
    offsets = (csr.ID, csr.VERSION, csr.CONFIG, csr.STATUS, csr.COMPLETED, csr.RING_HEAD)
    offsets += (csr.COMPLETED1, csr.RING1_HEAD, csr.ENGINE_BUSY, csr.ENGINE_WAIT, csr.COMMAND_WAIT)
    for offset in offsets:
        before = host.backend.read_csr(offset)
        host.backend.write_csr(offset, ~before & 0xFFFF_FFFF)
        assert host.backend.read_csr(offset) == before, hex(offset)


@pytest.mark.parametrize("offset", [0x054, 0x02C, 0x0C4, 0x13C, 0xFFC, 0x001, 0x1_0000, -4])
def test_offsets_between_registers_are_typed_errors(host: Host, offset: int) -> None:
    with pytest.raises(RegisterError):
        host.backend.read_csr(offset)
    with pytest.raises(RegisterError):
        host.backend.write_csr(offset, 0)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_values_beyond_32_bits_are_typed_errors(host: Host, value: int) -> None:
    with pytest.raises(RegisterError):
        host.backend.write_csr(csr.RING_BASE_HI, value)


def test_cycle_count_grows_and_is_read_in_two_halves(host: Host) -> None:
    def read() -> int:
        low = host.backend.read_csr(csr.CYCLE_LO)
        return low | host.backend.read_csr(csr.CYCLE_HI) << 32

    counts = [read() for _ in range(5)]
    assert counts == sorted(set(counts))
    assert counts[-1] < 1 << 32


# ---------------------------------------------------------------------- memory
def test_memory_returns_what_was_written_at_any_alignment(host: Host) -> None:
    rng = random.Random(1)
    shadow = bytearray(host.backend.read_memory(host.data, 8192))
    compared = 0
    for _ in range(200):
        start = rng.randrange(8192)
        data = rng.randbytes(rng.randrange(8193 - start))
        host.backend.write_memory(
            host.data + start, rng.choice([bytes, bytearray, memoryview])(data)
        )
        shadow[start : start + len(data)] = data
        low, high = sorted(rng.randrange(8193) for _ in range(2))
        assert host.backend.read_memory(host.data + low, high - low) == shadow[low:high]
        compared += high - low
    assert host.backend.read_memory(host.data, 8192) == shadow
    assert compared > 100_000


def test_memory_reaches_both_ends(host: Host) -> None:
    for address in (CONFIG.memory.base, CONFIG.memory.limit - 3):
        host.backend.write_memory(address, b"end")
        assert host.backend.read_memory(address, 3) == b"end"
    if Feature.MAPPED_MEMORY in host.backend.features:
        assert bytes(host.backend.memory[-3:]) == b"end"


@pytest.mark.parametrize(
    ("address", "size_bytes"),
    [
        (CONFIG.memory.limit, 1),
        (CONFIG.memory.limit - 1, 2),
        (-1, 2),
        (1 << 64, 1),
        ((1 << 64) - 1, 2),
    ],
)
def test_memory_outside_the_window_is_a_typed_error(
    host: Host, address: int, size_bytes: int
) -> None:
    last = host.backend.read_memory(CONFIG.memory.limit - 1, 1)
    with pytest.raises(AddressError):
        host.backend.read_memory(address, size_bytes)
    with pytest.raises(AddressError):
        host.backend.write_memory(address, bytes([~last[0] & 0xFF] * size_bytes))
    assert host.backend.read_memory(CONFIG.memory.limit - 1, 1) == last


# ---------------------------------------------------------------------- ring and records
@pytest.mark.parametrize("ring_log2", [1, 2, 3])
@pytest.mark.parametrize("record_log2", [1, 4])
def test_ring_wraps_and_every_command_leaves_its_record(
    host: Host, ring_log2: int, record_log2: int
) -> None:
    host.start(ring_log2, record_log2)
    room = (1 << ring_log2) - 1
    seq = 0
    for batch in [1, room, room, 1, room, room, room]:
        packets = [nop() if index % 2 else sync(host.data, index) for index in range(batch)]
        host.ring_packets(*packets)
        host.wait_until(seq + batch)
        for index in range(max(0, batch - (1 << record_log2)), batch):
            record = host.record((seq + index) % (1 << record_log2))
            assert (record.seq, record.status) == (seq + index, ErrorCode.NONE)
            assert record.opcode == packets[index].opcode
            assert record.start_cycle <= record.end_cycle
        seq += batch
        assert host.backend.read_csr(csr.RING_HEAD) == seq % (1 << ring_log2)
    assert seq >= 7
    assert host.state() == DeviceState.DONE
    assert host.backend.read_csr(csr.COMMANDS_LO) == seq


def test_ring_sizes_beyond_16_bits_count_as_16(host: Host) -> None:
    """All slots hold zeros: NOPs. The index wraps from 65535 to 0."""
    host.start()
    host.backend.write_csr(csr.CPL_CTRL, 0)
    host.backend.write_csr(csr.RING_CTRL, 0)
    host.backend.write_csr(csr.RING_BASE_LO, host.data)
    host.backend.write_memory(host.data, bytes(64 << 16))
    host.backend.write_csr(csr.RING_CTRL, 20 << 8 | 1)
    for tail, completed in ((0xFFFF, 0xFFFF), (2, 0x1_0002)):
        host.backend.write_csr(csr.RING_TAIL, tail)
        host.wait_until(completed)
        assert host.backend.read_csr(csr.RING_HEAD) == tail


def test_records_are_written_only_when_enabled(host: Host) -> None:
    host.start()
    host.backend.write_csr(csr.CPL_CTRL, 0)
    host.backend.write_memory(host.records, b"\xaa" * 64)
    host.ring_packets(nop())
    host.wait_until(1)
    assert host.backend.read_memory(host.records, 64) == b"\xaa" * 64


def test_a_disabled_ring_is_not_fetched_until_it_is_enabled(host: Host) -> None:
    host.start()
    host.backend.write_csr(csr.RING_CTRL, host.ring_log2 << 8)
    host.ring_packets(nop())
    for _ in range(20):
        assert host.backend.read_csr(csr.COMPLETED) == 0
    host.backend.write_csr(csr.RING_CTRL, host.ring_log2 << 8 | 1)
    host.wait_until(1)


@executes
def test_ring_commands_execute_in_order(host: Host) -> None:
    host.start(ring_log2=4)
    host.ring_packets(
        fill_bytes(host.data, 256, 0x11),
        sync(host.data + 64, 0xAAAA_AAAA),
        fill_bytes(host.data + 62, 4, 0x22),
        sync(host.data + 128, 0x1234_5678),
    )
    host.wait_until(4)
    expected = bytearray(b"\x11" * 256)
    expected[64:68] = b"\xaa" * 4
    expected[62:66] = b"\x22" * 4
    expected[128:132] = bytes.fromhex("78563412")
    assert host.backend.read_memory(host.data, 256) == expected


def test_perf_clear_zeroes_the_command_count_but_not_the_sequence(host: Host) -> None:
    host.start()
    host.ring_packets(nop(), nop())
    host.wait_until(2)
    host.backend.write_csr(csr.PERF_CTRL, 1)
    assert host.backend.read_csr(csr.COMMANDS_LO) == 0
    assert host.backend.read_csr(csr.COMPLETED) == 2


# ---------------------------------------------------------------------- command registers
def test_the_window_runs_packets_without_a_ring(host: Host) -> None:
    host.backend.write_csr(csr.IRQ_ENABLE, EMPTY)
    host.push(nop())
    assert host.wait() == EMPTY
    assert host.backend.read_csr(csr.COMPLETED) == 1
    assert host.backend.read_csr(csr.STATUS) == DeviceState.DONE | 1 << 8 | 3 << 10


def test_a_push_repeats_the_words_that_stayed(host: Host) -> None:
    host.start()
    host.push(nop())
    host.wait_until(1)
    host.backend.write_csr(csr.CMD_PUSH, 0)
    host.backend.write_csr(csr.CMD_PUSH, 1)
    host.wait_until(2)
    assert host.record(1).opcode == Opcode.NOP


def test_the_command_registers_go_before_the_ring(host: Host) -> None:
    host.start(ring_log2=4, record_log2=4)
    host.load_registers(nop())
    host.ring_packets(fill_bytes(host.data, LONG_BYTES), sync(host.data, 1), sync(host.data, 2))
    host.backend.write_csr(csr.CMD_PUSH, 1)
    host.wait_until(4)
    opcodes = [host.record(slot).opcode for slot in range(4)]
    assert opcodes.index(Opcode.NOP) < opcodes.index(Opcode.SYNC)
    assert sorted(opcodes) == [Opcode.NOP, Opcode.FILL, Opcode.SYNC, Opcode.SYNC]


def test_a_push_into_a_full_queue_is_dropped(host: Host) -> None:
    host.start()
    host.push(fill_bytes(host.data, LONG_BYTES))
    host.load_registers(nop())
    for _ in range(4):
        host.backend.write_csr(csr.CMD_PUSH, 1)
    taken = 5
    while not host.backend.read_csr(csr.STATUS) & csr.STATUS_CSR_QUEUE_FULL_MASK:
        assert taken < 32, "the queue is never full"  # a device may have checked some ahead
        host.backend.write_csr(csr.CMD_PUSH, 1)
        taken += 1
    for _ in range(3):
        host.backend.write_csr(csr.CMD_PUSH, 1)
    host.wait_until(taken)
    assert host.backend.read_csr(csr.STATUS) == DeviceState.DONE | 1 << 8 | 3 << 10
    assert host.backend.read_csr(csr.COMPLETED) == taken


# ---------------------------------------------------------------------- interrupts
def test_complete_is_raised_only_by_the_irq_flag(host: Host) -> None:
    host.start(irqs=EMPTY)
    host.ring_packets(nop())
    assert host.wait() == EMPTY
    host.ring_packets(nop(irq=True))
    assert host.wait() == EMPTY | COMPLETE


def test_empty_waits_for_the_last_command(host: Host) -> None:
    host.start(irqs=COMPLETE)
    host.ring_packets(nop(irq=True), fill_bytes(host.data, LONG_BYTES), nop(irq=True))
    assert host.backend.wait_interrupt(60) == COMPLETE
    host.backend.write_csr(csr.IRQ_STATUS, COMPLETE)
    assert host.backend.wait_interrupt(60) & COMPLETE
    host.wait_until(3)
    assert host.backend.read_csr(csr.IRQ_STATUS) & EMPTY


def test_status_bits_clear_one_by_one_and_only_by_writing_one(host: Host) -> None:
    host.start()
    host.ring_packets(nop(irq=True))
    host.wait_until(1)
    host.ring_packets(nop(irq=True))
    host.backend.wait_interrupt(60)
    while host.backend.read_csr(csr.IRQ_STATUS) != EMPTY | COMPLETE:
        pass
    host.backend.write_csr(csr.IRQ_STATUS, 0)
    assert host.backend.read_csr(csr.IRQ_STATUS) == EMPTY | COMPLETE
    host.backend.write_csr(csr.IRQ_STATUS, EMPTY)
    assert host.backend.read_csr(csr.IRQ_STATUS) == COMPLETE
    host.backend.write_csr(csr.IRQ_STATUS, COMPLETE)
    assert host.backend.read_csr(csr.IRQ_STATUS) == 0


def test_a_masked_interrupt_is_remembered_but_does_not_wake(host: Host) -> None:
    host.start(irqs=0)
    host.ring_packets(nop(irq=True))
    with pytest.raises(SimulatorTimeout):
        host.backend.wait_interrupt(0.01)  # less than a simulator takes to find that it hangs
    assert host.backend.read_csr(csr.IRQ_STATUS) == EMPTY | COMPLETE
    host.backend.write_csr(csr.IRQ_ENABLE, COMPLETE)
    assert host.backend.wait_interrupt(60) == EMPTY | COMPLETE
