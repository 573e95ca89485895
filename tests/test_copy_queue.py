# SPDX-License-Identifier: Apache-2.0
"""COPYs of one queue keep the bus busy, and the later one does not delay the earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from backend_host import CONFIG, Host

from driver.backend.rtl import RtlBackend
from driver.isa import CompletionRecord, DType, Opcode, Packet, csr, flag_word

INT8 = flag_word(DType.INT8, DType.INT8)
SOURCE, TARGET = 0x30_0000, 0x40_0000
COPY_BYTES = 64 * 1024
ALONE_SLACK = 8
"""Cycles: bursts of the later command, the last ones of a request, between those of the earlier."""


@pytest.fixture(scope="module")
def rtl() -> Iterator[Host]:
    with RtlBackend(CONFIG) as backend:
        yield Host(backend, CONFIG)


def copies(host: Host, count: int) -> tuple[int, int, list[CompletionRecord]]:
    """Read beats, busy cycles and records of a ring of COPYs, each to a place of its own."""
    host.backend.reset()
    host.start()
    host.backend.write_csr(csr.PERF_CTRL, 1)
    host.ring_packets(
        *[
            Packet(Opcode.COPY, INT8, SOURCE, 0, TARGET + index * COPY_BYTES, (COPY_BYTES,))
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
