# SPDX-License-Identifier: Apache-2.0
"""Random packets of the bench, on the cmodel alone: legal ones are accepted, others refused."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from driver.backend.shared_memory import FaultRange
from driver.isa import FLAGS, ErrorCode, Opcode, Packet
from driver.isa.programs import BOOT_IMAGE
from golden._cmodel import CModel
from tb.seqs.arena import Arena
from tb.seqs.broken import BREAKS
from tb.seqs.failing import failing_stream
from tb.seqs.faults import FAULTS
from tb.seqs.mixed import mixed
from tb.seqs.packets import legal, matmul
from tb.seqs.spoiled import spoiled

BASE, SIZE = 1 << 20, 1 << 22


class Host:
    """A cmodel on a few MiB, and an arena in them."""

    def __init__(self, seed: int) -> None:
        self.memory = np.zeros(SIZE, np.uint8)
        self.model = CModel(self.memory, BASE, BASE + SIZE, 1, BOOT_IMAGE)
        self.arena = Arena(random.Random(seed), BASE + 4096, BASE + SIZE)

    def run(self, packet: Packet) -> ErrorCode:
        """The packet's answer, with the arena's contents in memory."""
        for address, data in self.arena.taken():
            self.memory[address - BASE :][: len(data)] = np.frombuffer(data, np.uint8)
        return ErrorCode(self.model.execute(packet.pack()))

    def poison(self, faults: list[FaultRange]) -> None:
        """From now on these ranges answer with a bus error, and no others."""
        self.model.clear_poison()
        for one in faults:
            self.model.poison(one.begin, one.end - one.begin, one.on_read, one.on_write)


def test_legal_packets_are_accepted_and_products_have_windows_and_starts() -> None:
    host = Host(1)
    seen = dict.fromkeys(("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC"), 0)
    for number in range(400):
        packet = legal(host.arena, 20)
        assert host.run(packet) == ErrorCode.NONE, f"{number}: {host.model.last_fault}"
        for name in seen if packet.opcode == Opcode.MATMUL else ():
            seen[name] += bool(packet.flags & FLAGS[name].mask)
    assert min(seen.values()) > 5, seen


@pytest.mark.parametrize("name", BREAKS)
def test_broken_packets_are_refused(name: str) -> None:
    for seed in range(12):
        host = Host(seed)
        packet = BREAKS[name](matmul(host.arena, 20), host.arena)
        assert host.run(packet) != ErrorCode.NONE, f"seed {seed}"


def test_each_wrong_alone_makes_a_packet_illegal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb.seqs.spoiled._WRONGS_AT_A_TIME", (1,))
    monkeypatch.setattr("tb.seqs.spoiled._UNREADABLE", 0)
    monkeypatch.setattr("tb.seqs.spoiled._UNKNOWN", 0)
    host = Host(1)
    seen: Counter[str] = Counter()
    for number in range(900):
        bad = spoiled(host.arena)
        seen.update(bad.wrongs[1:])
        assert host.run(bad.packet) != ErrorCode.NONE, f"{number}: {bad}"
    assert len(seen) == 12
    assert min(seen.values()) > 5, seen


def test_packets_with_several_wrongs_give_every_error_that_checks_can_find() -> None:
    host = Host(1)
    seen: Counter[ErrorCode] = Counter()
    for number in range(400):
        bad = spoiled(host.arena)
        host.run(Packet(Opcode.NOP))  # places the contents
        host.poison(list(bad.faults))
        code = host.run(bad.packet)
        assert code != ErrorCode.NONE, f"{number}: {bad}"
        seen[code] += 1
    later = {ErrorCode.NONE, ErrorCode.BUS_WRITE, ErrorCode.BAD_INDEX, ErrorCode.BAD_IMAGE}
    assert set(seen) == set(ErrorCode) - later
    assert min(seen.values()) > 3, seen


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_packets_fail_with_their_fault_and_pass_without(name: str) -> None:
    for seed in range(4):
        host = Host(seed)
        faulty = FAULTS[name](host.arena)
        host.poison([faulty.fault])
        code = host.run(faulty.packet)
        assert code in (ErrorCode.BUS_READ, ErrorCode.BUS_WRITE, ErrorCode.BAD_INDEX), f"{seed}"
        host.poison([])
        expected = ErrorCode.BAD_INDEX if code is ErrorCode.BAD_INDEX else ErrorCode.NONE
        assert host.run(faulty.packet) == expected


@pytest.mark.parametrize("name", FAULTS)
def test_streams_fail_at_their_packet_and_what_runs_beside_it_is_independent(name: str) -> None:
    for seed in range(8):
        host = Host(seed)
        stream = failing_stream(host.arena, name, 7)
        assert len(stream.packets) == 7
        host.run(Packet(Opcode.NOP))  # places the contents
        host.poison(stream.faults)
        codes = [host.run(packet) for packet in stream.packets[: stream.failing + 1]]
        assert [bool(code) for code in codes] == [False] * stream.failing + [True], f"seed {seed}"
        host.poison(stream.faults[1:])
        before = host.memory.copy()
        for packet in stream.packets[stream.failing + 1 : stream.waiting]:
            host.run(packet)
        written = set((np.flatnonzero(host.memory != before) + BASE).tolist())
        assert not written - {address for spoilt in stream.spoilt for address in spoilt}
        before = host.memory.copy()
        for packet in stream.packets[stream.waiting :]:
            host.run(packet)
        assert (host.memory != before).any(), f"seed {seed}: nothing would show that they ran"


def test_mixed_streams_are_legal_and_have_commands_of_every_kind_that_depend_on_each_other() -> (
    None
):
    seen: Counter[str] = Counter()
    for seed in range(24):
        host = Host(seed)
        packets = mixed(host.arena, 40)
        host.run(Packet(Opcode.NOP))  # places the contents
        start = host.memory.copy()
        for number, packet in enumerate(packets):
            assert host.run(packet) == ErrorCode.NONE, f"{seed}, {number}: {host.model.last_fault}"
            seen[Opcode(packet.opcode).name] += 1
            seen.update(name for name in _NOTABLE if packet.flags & FLAGS[name].mask)
        whole = host.memory.copy()
        other = False
        for first in (0, 1):  # neighbours change places: these pairs, then the others
            host.memory[:] = start
            for at in range(first, len(packets) - 1, 2):
                codes = [host.run(packet) for packet in (packets[at + 1], packets[at])]
                seen["an order that cannot be otherwise"] += any(codes)
            other |= bool((host.memory != whole).any())
        seen["other bits in another order"] += other
    assert seen["other bits in another order"] == 24
    assert seen["an order that cannot be otherwise"] > 40, seen
    assert all(seen[opcode.name] >= 3 for opcode in Opcode), seen
    assert all(seen[name] >= 10 for name in _NOTABLE), seen


_NOTABLE = ("INT4_GROUP", "OPERAND_LIST", "SRC3_DESC", "ACCUMULATE")
