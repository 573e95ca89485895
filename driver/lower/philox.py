# SPDX-License-Identifier: Apache-2.0
"""An op's random words: Philox4x32-10 by the vector engine, two rounds per pass.

A pass has one result, so the four counter words of all blocks are arrays of their own, and two
rounds are four packets. The first counter word is the block's number, the others are the stream's.
"""

from __future__ import annotations

from collections.abc import Sequence

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.positions import positions
from driver.runtime.views import TensorView

ROUNDS = 10
_KEY_STEP = (0x9E37_79B9, 0xBB67_AE85)
_WORD = 0xFFFF_FFFF
_SOURCES = ((0, 3, 2), (0, 3), (2, 1, 0), (2, 1))
"""For each word after two rounds, the words before that its program reads."""


def _round_key(key: tuple[int, int], number: int) -> tuple[int, int]:
    """The key of a round, counted from 0."""
    return (
        (key[0] + number * _KEY_STEP[0]) & _WORD,
        (key[1] + number * _KEY_STEP[1]) & _WORD,
    )


def permute(
    b: ProgramBuilder,
    counter: Sequence[TensorView],
    key: tuple[int, int],
    results: Sequence[TensorView],
) -> None:
    """Philox of counters: four int32 views, and four that get the words, of one size."""
    sizes = results[0].sizes
    buffers = [[b.temp(DType.INT32, sizes) for _ in range(4)] for _ in range(2)]
    state = list(counter)
    for number in range(0, ROUNDS, 2):
        key0, key1 = _round_key(key, number)
        next0, next1 = _round_key(key, number + 1)
        imms = ((key1, next0), (key1,), (key0, next1), (key0,))
        last = number + 2 == ROUNDS
        made = list(results) if last else buffers[number // 2 % 2]
        for word, (sources, keys) in enumerate(zip(_SOURCES, imms, strict=True)):
            b.vector(f"philox_word{word}", [state[at] for at in sources], made[word], *keys)
        state = made


def words(b: ProgramBuilder, count: int) -> TensorView:
    """The words of elements 0 … count − 1 of this op's stream, as one dimension of int32."""
    blocks = -(-count // 4)
    made = b.temp(DType.INT32, (blocks, 4))
    number = positions(b, blocks)
    permute(b, (number, *b.counter()), b.stream.key, [made.selected(1, word) for word in range(4)])
    return made.reshaped((count,), (1,))


def shaped(line: TensorView, out: TensorView) -> TensorView:
    """A dense line of elements in the sizes of a result."""
    return line.split(0, out.sizes) if out.rank else line.reshaped((), ())


def words_like(b: ProgramBuilder, out: TensorView) -> TensorView:
    """A word per element of a result, in its sizes."""
    return shaped(words(b, out.count), out)
