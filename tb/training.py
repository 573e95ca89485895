# SPDX-License-Identifier: Apache-2.0
"""The programs that a profile-guided build is trained on: every opcode, with random operands.

Other programs than those of tb/bench, which measure such a build. They are the same for each build:
the same seed, the same commands. Knows nothing of compilers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from driver.backend.rtl import RtlBackend
from driver.config import HwConfig
from driver.isa import Packet
from driver.runtime.device import Device
from tb.seqs.arena import Arena
from tb.seqs.packets import legal

_SEED = 20
_ARENA_BYTES = 1 << 24
_TIMEOUT_S = 600.0
_ROUNDS = ((120, 16), (40, 96))
"""Commands, and the length that their operands are drawn from."""


def train(binary: Path, config: HwConfig) -> None:
    """Run the programs on `binary`, to its regular end. Errors are those of Device.submit."""
    with (
        RtlBackend(config, binary=binary, seed=_SEED) as backend,
        Device(backend, config) as device,
    ):
        start = device.alloc(_ARENA_BYTES).address
        arena = Arena(random.Random(_SEED), start, start + _ARENA_BYTES)
        for packet in _packets(arena):
            for address, data in arena.taken():
                backend.write_memory(address, data)
            device.submit([packet], _TIMEOUT_S)


def _packets(arena: Arena) -> Iterator[Packet]:
    """Each is to run before the next is drawn: they take the arena over again."""
    start = arena.base
    for commands, longest in _ROUNDS:
        for _ in range(commands):
            arena.base = start
            yield legal(arena, longest)
