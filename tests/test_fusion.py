# SPDX-License-Identifier: Apache-2.0
"""Passes fused into one leave the bits that they leave one after the other."""

from __future__ import annotations

from backend_host import CONFIG
from fusion_host import RandomPasses, executed, random_passes

from driver.compile import fused


def kept(given: RandomPasses, memory: dict) -> dict:
    return {b: bytes(d) for b, d in memory.items() if b not in given.temporaries}


def check(seed: int) -> int:
    given = random_passes(seed)
    commands = fused(given.commands, given.temporaries, CONFIG)
    expected = kept(given, executed(given.commands, given.memory))
    for at_once in (True, False):
        assert kept(given, executed(commands, given.memory, at_once=at_once)) == expected, seed
    return len(given.commands) - len(commands)


def test_random() -> None:
    saved = [check(seed) for seed in range(300)]
    assert sum(saved) > 100
