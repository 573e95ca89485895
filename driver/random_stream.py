# SPDX-License-Identifier: Apache-2.0
"""Which random numbers an op draws: the generator's key and counter, by docs/numerics.md."""

from __future__ import annotations

from dataclasses import dataclass

_WORD = 0xFFFF_FFFF


@dataclass(frozen=True)
class RandomStream:
    """The numbers of one op of one run. Equal streams are equal numbers."""

    seed: int
    """Of the run; its low 64 bits are the key."""
    op: int
    """The op's number in the run, from 0."""

    @property
    def key(self) -> tuple[int, int]:
        """The key's two words of 32 bits, the lower one first."""
        return self.seed & _WORD, self.seed >> 32 & _WORD

    @property
    def counter(self) -> tuple[int, int, int]:
        """Words 1 to 3 of the counter; word 0 is the block's number."""
        return 0, self.op & _WORD, self.op >> 32 & _WORD


FIRST_STREAM = RandomStream(0, 0)
"""Of an op that no run recorded."""
