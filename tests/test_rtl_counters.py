# SPDX-License-Identifier: Apache-2.0
"""The RTL's performance counters and the numbers in its completion records are the same events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from backend_host import CONFIG, Host

from driver.backend.rtl import RtlBackend
from driver.isa import COMPLETION_BYTES, CompletionRecord, DType, Opcode, Packet, csr, flag_word
from driver.runtime.engine_counters import Engine, EngineCounters, read_engine_counters

BUS_BYTES = CONFIG.bus_bits // 8
RECORD_BEATS = COMPLETION_BYTES // BUS_BYTES
STALL = 200
"""Chance out of 256 that a channel of the DRAM holds back: engines then wait on both sides."""
M, K, N = 24, 40, 32
WORDS = 3000
COUNTERS = (
    csr.BUSY_CYCLES_LO,
    csr.ACTIVE_CYCLES_LO,
    csr.OPERAND_STALL_LO,
    csr.RESULT_STALL_LO,
    csr.READ_BEATS_LO,
    csr.WRITE_BEATS_LO,
    csr.COMMANDS_LO,
)


@pytest.fixture(scope="module")
def rtl() -> Iterator[Host]:
    with RtlBackend(CONFIG, variant="check") as backend:
        yield Host(backend, CONFIG)


FP32 = flag_word(DType.FP32, DType.FP32, "IRQ")
A, B, C = (0x30_0000 + 0x1_0000 * index for index in range(3))
PRODUCT = Packet(Opcode.MATMUL, FP32, A, B, C, (M, K, N, 1))
COPY = Packet(Opcode.COPY, FP32, A, 0, C, (WORDS,))
# Packet, words read and written, and fields that differ: none of them can change places unseen.
CASES = {
    "product": (PRODUCT, (M + N) * K, M * N, ("active_cycles", "read_beats", "write_beats")),
    "copy": (COPY, WORDS, WORDS, ("active_cycles", "operand_stall", "result_stall")),
}


def counted(host: Host, packet: Packet) -> tuple[dict[int, int], CompletionRecord]:
    """Counters and record of one command, pushed without a ring after the counters were cleared."""
    assert isinstance(host.backend, RtlBackend)
    host.backend.set_dram(CONFIG.dram.latency_cycles, STALL, seed=1)
    host.backend.reset()
    host.start()
    host.backend.write_csr(csr.PERF_CTRL, 1)
    host.push(packet)
    host.wait_until(1)
    return {offset: host.backend.read_csr(offset) for offset in COUNTERS}, host.record(0)


@pytest.mark.parametrize("name", CASES)
def test_a_record_tells_what_the_counters_tell(rtl: Host, name: str) -> None:
    packet, words_read, words_written, different = CASES[name]
    counters, record = counted(rtl, packet)
    assert record.active_cycles == counters[csr.ACTIVE_CYCLES_LO]
    assert record.operand_stall == counters[csr.OPERAND_STALL_LO]
    assert record.result_stall == counters[csr.RESULT_STALL_LO]
    assert record.read_beats == counters[csr.READ_BEATS_LO] == 4 * words_read // BUS_BYTES
    assert record.write_beats == 4 * words_written // BUS_BYTES
    assert counters[csr.WRITE_BEATS_LO] == record.write_beats + RECORD_BEATS
    assert counters[csr.COMMANDS_LO] == 1
    assert len({0, *(getattr(record, field) for field in different)}) == len(different) + 1
    assert 0 < record.start_cycle < record.end_cycle
    assert record.active_cycles + record.operand_stall <= record.cycles
    assert record.cycles < counters[csr.BUSY_CYCLES_LO]
    assert (record.seq, record.status, record.opcode) == (0, 0, packet.opcode)


def test_clear_zeroes_every_counter(rtl: Host) -> None:
    counters, _ = counted(rtl, COPY)
    assert min(counters.values()) > 0
    rtl.backend.write_csr(csr.PERF_CTRL, 1)
    for low in COUNTERS:
        assert (rtl.backend.read_csr(low), rtl.backend.read_csr(low + 4)) == (0, 0), hex(low)
    idle = EngineCounters(0, 0, dict.fromkeys(Engine, 0))
    assert read_engine_counters(rtl.backend) == dict.fromkeys(Engine, idle)


def test_counters_per_engine_say_who_waited_for_whom(rtl: Host) -> None:
    """A product, a COPY of its result, and two FILLs elsewhere behind that: the second FILL finds
    both channels of its engine busy."""
    rtl.backend.reset()
    rtl.start()
    fill = Packet(Opcode.FILL, FP32, 0, 0, C + 0x1_0000, (4, 7))
    from_result = Packet(Opcode.COPY, FP32, C, 0, A - 0x1_0000, (M * N,))
    other_fill = replace(fill, dst=C + 0x2_0000)
    for packet in (PRODUCT, from_result, fill, other_fill):
        rtl.push(packet)
    rtl.wait_until(4)
    product, copy, filled, filled_last = (rtl.record(index) for index in range(4))
    counters = read_engine_counters(rtl.backend)
    assert counters[Engine.MATRIX].busy == product.cycles
    assert counters[Engine.COPY].waited_for[Engine.MATRIX] == copy.operand_wait > 0
    assert filled.start_cycle < copy.end_cycle
    assert filled.engine_wait == 0
    assert counters[Engine.COPY].wanted == filled_last.engine_wait > 0
    assert counters[Engine.VECTOR] == EngineCounters(0, 0, dict.fromkeys(Engine, 0))
