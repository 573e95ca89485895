# SPDX-License-Identifier: Apache-2.0
"""Two COPYs at a time: a busy bus, no delay of the earlier one, its bits and its errors."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from backend_host import CONFIG, Host

from driver.backend import InspectableBackend, open_backend
from driver.backend.rtl import RtlBackend
from driver.backend.shared_memory import FaultRange
from driver.isa import CompletionRecord, DeviceState, DType, Opcode, Packet, csr, flag_word

COPY_INT8 = flag_word(DType.INT8, DType.INT8)
FILL_INT8 = flag_word(DType.FP32, DType.INT8)
SOURCE, TARGET = 0x30_0000, 0x40_0000
COPY_BYTES = 64 * 1024
ALONE_SLACK = 8
"""Cycles: bursts of the later command, the last ones of a request, between those of the earlier."""
SHARED = 0x50_0000
SHARED_BYTES = 24_000
"""Few enough that some of the commands overlap in memory and some do not."""
COMMANDS = 60


@pytest.fixture(scope="module")
def rtl() -> Iterator[Host]:
    with RtlBackend(CONFIG, variant="check") as backend:
        yield Host(backend, CONFIG)


@pytest.fixture(scope="module")
def model() -> Iterator[InspectableBackend]:
    backend = open_backend("cmodel", CONFIG)
    yield backend
    backend.close()


def copies(host: Host, count: int) -> tuple[int, int, list[CompletionRecord]]:
    """Read beats, busy cycles and records of a ring of COPYs, each to a place of its own."""
    host.backend.reset()
    host.start()
    host.backend.write_csr(csr.PERF_CTRL, 1)
    host.ring_packets(
        *[
            Packet(Opcode.COPY, COPY_INT8, SOURCE, 0, TARGET + index * COPY_BYTES, (COPY_BYTES,))
            for index in range(count)
        ]
    )
    host.wait_until(count)
    beats, cycles = (host.backend.read_csr(low) for low in (csr.READ_BEATS_LO, csr.BUSY_CYCLES_LO))
    return beats, cycles, [host.record(index) for index in range(count)]


def test_a_queue_of_copies_reads_in_every_cycle(rtl: Host) -> None:
    beats, cycles, _ = copies(rtl, 3)
    more_beats, more_cycles, records = copies(rtl, 7)
    added = more_beats - beats  # packets included
    assert added >= 4 * COPY_BYTES // (CONFIG.bus_bits // 8)
    assert added / (more_cycles - cycles) >= 0.999
    assert all(later.start_cycle < earlier.end_cycle for earlier, later in pairwise(records))


def test_a_copy_does_not_delay_the_one_before_it(rtl: Host) -> None:
    _, _, (alone,) = copies(rtl, 1)
    _, _, (first, _) = copies(rtl, 2)
    assert first.cycles <= alone.cycles + ALONE_SLACK


def stream(rng: random.Random) -> list[Packet]:
    """COPYs and FILLs of up to 4,000 bytes anywhere in the shared bytes, at any alignment."""
    packets = []
    while len(packets) < COMMANDS:
        size = rng.randint(1, 4000)
        src, dst = (SHARED + rng.randrange(SHARED_BYTES - size) for _ in range(2))
        if rng.random() < 0.3:
            packets.append(Packet(Opcode.FILL, FILL_INT8, 0, 0, dst, (size, rng.getrandbits(8))))
        elif abs(src - dst) >= size:
            packets.append(Packet(Opcode.COPY, COPY_INT8, src, 0, dst, (size,)))
    return packets


def submitted(backend: InspectableBackend, seed: int, packets: list[Packet]) -> Host:
    """The stream on random bytes, its commands under way."""
    backend.reset()
    host = Host(backend, CONFIG)
    host.start(ring_log2=6, record_log2=6)
    backend.write_memory(SHARED, random.Random(seed).randbytes(SHARED_BYTES))
    host.ring_packets(*packets)
    return host


@pytest.mark.parametrize("seed", range(4))
def test_two_copies_at_a_time_leave_what_one_at_a_time_leaves(
    rtl: Host, model: InspectableBackend, seed: int
) -> None:
    packets = stream(random.Random(seed))
    assert isinstance(rtl.backend, RtlBackend)
    rtl.backend.set_dram((3, 100)[seed % 2], (0, 100)[seed // 2], seed)
    images = []
    for backend in (model, rtl.backend):
        host = submitted(backend, seed, packets)
        host.wait_until(COMMANDS)
        images.append(backend.read_memory(SHARED, SHARED_BYTES))
    assert images[0] == images[1]
    records = [host.record(index) for index in range(COMMANDS)]
    together = sum(later.start_cycle < earlier.end_cycle for earlier, later in pairwise(records))
    assert COMMANDS // 10 < together < COMMANDS - COMMANDS // 10


@pytest.mark.parametrize("seed", range(4))
def test_the_first_command_that_fails_is_reported(
    rtl: Host, model: InspectableBackend, seed: int
) -> None:
    """In whichever channel; a later one may have run beside it, but none starts behind it."""
    packets = stream(random.Random(seed))
    place = packets[20 + seed].dst
    reports = []
    for backend in (model, rtl.backend):
        backend.set_faults([FaultRange(place, place + 1, on_read=False)])
        host = submitted(backend, seed, packets)
        while host.state() is not DeviceState.ERROR:
            host.wait()
        backend.set_faults([])
        registers = (csr.ERROR_SEQ, csr.ERROR_CODE, csr.COMPLETED)
        reports.append([backend.read_csr(register) for register in registers])
    assert reports[0] == reports[1]
