# SPDX-License-Identifier: Apache-2.0
"""Random lists of passes, and what they leave in memory by integers only."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from driver.compile import Command, VectorPass
from driver.isa import DTYPE_BYTES, DType
from driver.isa.micro import Reduce, VectorProgram
from driver.isa.programs import PROGRAMS
from driver.runtime import Buffer, TensorView
from driver.runtime.views import collapse, dense
from golden import softvector

Memory = dict[Buffer, bytearray]
_WORD_BYTES = 4
_LONGEST = 36
"""Instructions of a program that a random pass runs: the integers of a long one take their time."""
NAMES = [name for name, program in PROGRAMS.items() if len(program.code) <= _LONGEST]
SHAPES: tuple[tuple[int, ...], ...] = (
    *((2, 3, 4), (7,), (3, 5), (1, 6), (4, 1), (2, 1, 3), (3, 3), (2, 2, 2), (4, 2)),
)
SPECIAL = {
    1: (0, 1, 0x7F, 0x80, 0xFF),
    2: (0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7C01, 0x7F80, 0x7FC1, 0xFF81, 0x3C00, 0x3F80),
    4: (
        0,
        1 << 31,
        1,
        0x7F80_0000,
        0xFF80_0000,
        0x7F80_0001,
        0xFFC0_1234,
        0x3F80_0000,
        0x33FF_FFFF,
    ),
    8: (0, 1, 1 << 63, (1 << 32) - 1, 1 << 31, (1 << 64) - 1),
}
"""Zeros of both signs, subnormals, infinities, NaNs with payloads, and words that carry."""


@dataclass(frozen=True)
class RandomPasses:
    """A list of passes, the buffers that only they use, and the bytes at the start."""

    commands: tuple[VectorPass, ...]
    temporaries: frozenset[Buffer]
    memory: Memory

    @property
    def operands(self) -> tuple[Buffer, ...]:
        """The other buffers."""
        return tuple(buffer for buffer in self.memory if buffer not in self.temporaries)


class _Drawing:
    """One list in the making."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sizes = self.rng.choice(SHAPES)
        self.memory: Memory = {}
        self.temporaries: set[Buffer] = set()
        self.readable: list[TensorView] = []
        for _ in range(self.rng.randint(1, 4)):
            self.readable.append(self._view(self._buffer(), self._dtype(), may_repeat=True))

    def passes(self) -> RandomPasses:
        commands = tuple(self._pass() for _ in range(self.rng.randint(2, 7)))
        return RandomPasses(commands, frozenset(self.temporaries), self.memory)

    def _dtype(self) -> DType:
        return self.rng.choice(list(DType))

    def _buffer(self) -> Buffer:
        """128 elements of the widest type: room for any layout of a shape."""
        buffer = Buffer(512)
        data = bytearray()
        while len(data) < buffer.size_bytes:
            width = self.rng.choice((1, 2, 4, 8))
            special = self.rng.choice(SPECIAL[width])
            bits = special if self.rng.random() < 0.5 else self.rng.getrandbits(8 * width)
            data += bits.to_bytes(width, "little") * self.rng.randint(1, 3)
        self.memory[buffer] = data[: buffer.size_bytes]
        return buffer

    def _view(self, buffer: Buffer, dtype: DType, *, may_repeat: bool) -> TensorView:
        view = dense(buffer, dtype, self.sizes)
        if self.rng.random() < 0.3:  # stored in another order
            order = self.rng.sample(range(view.rank), view.rank)
            stored = dense(buffer, dtype, tuple(self.sizes[at] for at in order))
            view = stored.permuted([order.index(at) for at in range(view.rank)])
        if may_repeat and self.rng.random() < 0.3:
            dim = self.rng.randrange(view.rank)
            strides = tuple(0 if at == dim else step for at, step in enumerate(view.strides))
            view = view.reshaped(view.sizes, strides)
        if self.rng.random() < 0.2:
            view = replace(view, offset_bytes=8 * self.rng.randrange(4))
        return view

    def _source(self) -> TensorView:
        view = self.rng.choice(self.readable[-6:])
        width = DTYPE_BYTES[view.dtype]
        if width >= _WORD_BYTES and self.rng.random() < 0.2:  # one of its words
            step = width // _WORD_BYTES
            strides = tuple(stride * step for stride in view.strides)
            offset = view.offset_bytes + _WORD_BYTES * self.rng.randrange(step)
            view = replace(view, dtype=DType.INT32, strides=strides, offset_bytes=offset)
        elif self.rng.random() < 0.1:  # read as another type of its width
            same = [other for other in DType if DTYPE_BYTES[other] == width]
            view = replace(view, dtype=self.rng.choice(same))
        return self._moved(view) if self.rng.random() < 0.15 else view

    def _moved(self, view: TensorView) -> TensorView:
        """Other elements of the same buffer."""
        kind = self.rng.randrange(3)
        if kind == 0:  # the next ones
            return replace(view, offset_bytes=view.offset_bytes + DTYPE_BYTES[view.dtype])
        dims = self.rng.sample(range(view.rank), min(view.rank, 2))
        strides = list(view.strides)
        if kind == 1:  # one row again and again
            strides[dims[0]] = 0
        else:  # transposed
            strides[dims[0]], strides[dims[-1]] = strides[dims[-1]], strides[dims[0]]
        return view.reshaped(view.sizes, strides)

    def _result(self) -> TensorView:
        known = [view for view in self.readable if not view.repeats]
        if known and self.rng.random() < 0.3:  # in place, or over an earlier result
            view = self.rng.choice(known)
            moved = self._moved(view) if self.rng.random() < 0.4 else view
            return moved if _injective(moved) else view
        buffer = self._buffer()
        if self.rng.random() < 0.7:
            self.temporaries.add(buffer)
        return self._view(buffer, self._dtype(), may_repeat=False)

    def _pass(self) -> VectorPass:
        while True:
            program = PROGRAMS[self.rng.choice(NAMES)]
            sources = tuple(self._source() for _ in range(program.sources))
            reduces = program.reduce is not Reduce.NONE
            result = self._result()
            small = self.rng.randrange(result.rank) if self.rng.random() < 0.25 else None
            if reduces:
                small = result.rank - 1
            if any(_unlike(view, result, reduces) for view in sources):
                continue
            readable = result
            if small is not None:  # one element of a dimension; later passes repeat it
                strides = [0 if at == small else n for at, n in enumerate(result.strides)]
                readable = result.reshaped(result.sizes, strides)
                result = result.sliced(small, 0, 1)
                if not reduces:
                    sources = tuple(view.sliced(small, 0, 1) for view in sources)
            self.readable.append(readable)
            imms = tuple(self.rng.choice(SPECIAL[4]) for _ in program.imms)
            return self._walked(VectorPass(program, sources, (result,), imms))

    def _walked(self, one: VectorPass) -> VectorPass:
        """The pass, often with its dimensions in another order or merged."""
        views, has_row = [*one.sources, *one.results], one.program.positional
        if self.rng.random() < 0.5:
            order = list(range(views[0].rank - has_row))
            self.rng.shuffle(order)
            order += [views[0].rank - 1] * has_row
            views = [view.permuted(order) for view in views]
        if not has_row and self.rng.random() < 0.5:
            sizes, walks = collapse(views[0].sizes, *(view.strides for view in views))
            views = [view.reshaped(sizes, walk) for view, walk in zip(views, walks, strict=True)]
        count = len(one.sources)
        return replace(one, sources=tuple(views[:count]), results=tuple(views[count:]))


def _injective(view: TensorView) -> bool:
    """Whether no two elements are the same."""
    reach = 1
    for step, size in sorted(zip(view.strides, view.sizes, strict=True)):
        if size > 1 and step < reach:
            return False
        reach += step * (size - 1)
    return True


def _unlike(source: TensorView, result: TensorView, reduces: bool) -> bool:
    """Whether a pass would read other elements than it writes of one buffer: undefined data."""
    same = (source.strides, source.offset_bytes) == (result.strides, result.offset_bytes)
    same = same and source.dtype is result.dtype and not reduces
    return source.buffer is result.buffer and not same


def random_passes(seed: int) -> RandomPasses:
    """Two to seven passes of programs of the table on a few tensors, some of them in place."""
    return _Drawing(seed).passes()


# ---------------------------------------------------------------------- what they do
def executed(commands: Sequence[Command], memory: Memory, *, at_once: bool = True) -> Memory:
    """Memory after the passes. `at_once`: of each pass, all elements are read before any is
    written; else element by element. docs/isa.md allows either."""
    after = {buffer: bytearray(data) for buffer, data in memory.items()}
    for command in commands:
        assert isinstance(command, VectorPass)
        writes = _elements(command, after)
        for buffer, offset, data in list(writes) if at_once else writes:
            after[buffer][offset : offset + len(data)] = data
    return after


def _elements(one: VectorPass, memory: Memory) -> Iterator[tuple[Buffer, int, bytes]]:
    """Buffer, offset and bytes of each element of the results."""
    reduces = one.program.reduce is not Reduce.NONE
    outer = one.sizes[:-1] if reduces else one.sizes
    for index in product(*map(range, outer)):
        if not reduces:
            words = _run(one.program, one, memory, index)
        else:
            row = [_run(one.program, one, memory, (*index, at))[0] for at in range(one.sizes[-1])]
            words = (softvector.reduce(one.program.reduce, row),)
        for view, word in zip(one.results, words, strict=True):
            bits = softvector.store(view.dtype, word)
            where = _offset(view, (*index, 0) if reduces else index)
            yield view.buffer, where, bits.to_bytes(DTYPE_BYTES[view.dtype], "little")


def _run(
    program: VectorProgram, one: VectorPass, memory: Memory, index: tuple[int, ...]
) -> tuple[int, ...]:
    sources = []
    for view in one.sources:
        at, width = _offset(view, index), DTYPE_BYTES[view.dtype]
        bits = int.from_bytes(memory[view.buffer][at : at + width], "little")
        sources.append(softvector.load(view.dtype, bits))
    return softvector.run(program, sources, one.imms, index[-1])


def _offset(view: TensorView, index: tuple[int, ...]) -> int:
    elements = sum(at * step for at, step in zip(index, view.strides, strict=True))
    return view.offset_bytes + elements * DTYPE_BYTES[view.dtype]
