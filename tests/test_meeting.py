# SPDX-License-Identifier: Apache-2.0
"""Pairs of commands with one dependence: the order of the two changes what they leave."""

from __future__ import annotations

import random
from collections import Counter

from backend_host import CONFIG

from driver.isa import ErrorCode, Packet
from golden.backend import CmodelBackend
from tb.seqs.arena import Arena
from tb.seqs.meeting import meetings

_BASE, _LIMIT = 1 << 16, 1 << 22


def left(contents: list[tuple[int, bytes]], packets: list[Packet]) -> tuple[list[bool], bytes]:
    """Which commands the model accepts, and its memory behind them."""
    device = CmodelBackend(CONFIG, threads=1)
    for address, data in contents:
        device.write_memory(address, data)
    accepted = [device._execute(packet.pack(), 0) is ErrorCode.NONE for packet in packets]
    return accepted, device.read_memory(_BASE, _LIMIT - _BASE)


def test_the_order_of_the_two_decides_what_they_leave() -> None:
    arena = Arena(random.Random(1), _BASE, _LIMIT)
    kinds: Counter[str] = Counter()
    loaded: list[tuple[int, bytes]] = []
    for one in meetings(arena):
        contents = arena.taken()
        loaded = loaded or contents[:1]  # the image comes once
        before = list(one.before)
        right, memory = left(loaded + contents, [*before, one.first, one.second])
        _, other = left(loaded + contents, [*before, one.second, one.first])
        assert all(right), one.name
        assert memory != other, one.name
        kinds[one.name.partition(": ")[0]] += 1
    assert kinds["VECTOR"] == 8
    assert kinds["VECTOR with a list"] == 31
    assert kinds["MATMUL of windows"] == 24, kinds
