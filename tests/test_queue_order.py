# SPDX-License-Identifier: Apache-2.0
"""Queues of several ops: cut, fused and ordered commands leave the bits of the ops one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from backend_host import CONFIG

from driver.compile import joined, queued
from driver.compile.clock import slowdowns
from driver.compile.decoding import DecodedProgram
from driver.compile.footprints import access_of, footprint
from driver.compile.passes import ElementCopy, MatrixProduct, OtherCommand
from driver.compile.scheduling import scheduled
from driver.isa import DTYPE_BYTES, DType, Opcode
from driver.lower.builder import ProgramBuilder
from driver.lower.operands import MatrixView
from driver.runtime import Buffer, Device, Program, TensorView
from driver.runtime.views import dense
from golden.backend import CmodelBackend

_SIDE = 16
_TYPES = (DType.FP32, DType.BF16)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with Device(CmodelBackend(CONFIG, threads=1), CONFIG) as opened:
        yield opened


@dataclass(frozen=True)
class Stream:
    """Programs one after the other, and the buffers that are of no use afterwards."""

    programs: tuple[Program, ...]
    operands: tuple[Buffer, ...]
    temporaries: frozenset[Buffer]


class _Drawing:
    """One stream in the making: matrices of 16 × 16, of which ops use whole halves."""

    def __init__(self, seed: int, ops: int) -> None:
        self.rng = random.Random(seed)
        self.types = {_matrix(dtype): dtype for dtype in _TYPES * 4}
        self.written: set[Buffer] = set()
        self.programs = [self._op() for _ in range(ops)]

    def stream(self) -> Stream:
        operands = tuple(self.types)
        made = self.written - set(operands[:3])
        unread = frozenset(b for b in made if self.rng.random() < 0.9 and self._starts_whole(b))
        return Stream(tuple(self.programs), operands, unread)

    def _starts_whole(self, buffer: Buffer) -> bool:
        """Whether no op reads the buffer before one has written all of it."""
        for program in self.programs:
            (command,) = DecodedProgram(program).commands
            if buffer in command.reads:
                return False
            if buffer in command.writes:
                access = access_of(command)
                sizes = {one.stop - one.start for one in access.writes if one.buffer is buffer}
                return sizes == {buffer.size_bytes}
        return False

    def _op(self) -> Program:
        b = ProgramBuilder("stream", CONFIG)
        self.rng.choice([self._product, self._copy, self._pass, self._pass, self._reduce])(b)
        return b.program()

    def _pick(self, dtype: DType, *others: TensorView) -> TensorView:
        taken = {view.buffer for view in others}
        found = [at for at, one in self.types.items() if one is dtype and at not in taken]
        buffer = self.rng.choice(found)
        return dense(buffer, dtype, (_SIDE, _SIDE))

    def _half(self, view: TensorView, kind: int) -> TensorView:
        """All, half of the rows or half of the columns."""
        if kind == 2:
            return view
        return view.sliced(kind, self.rng.choice((0, _SIDE // 2)), _SIDE // 2)

    def _wrote(self, view: TensorView) -> TensorView:
        self.written.add(view.buffer)
        return view

    def _product(self, b: ProgramBuilder) -> None:
        dtype = self.rng.choice(_TYPES)
        result = self._wrote(self._pick(dtype))
        a, other = self._pick(dtype, result), self._pick(dtype, result)
        if self.rng.random() < 0.5:
            other = other.transposed()
        first = self.rng.choice((0, _SIDE // 2))
        if self.rng.random() < 0.5:
            other, result = (view.sliced(1, first, _SIDE // 2) for view in (other, result))
        views = (MatrixView(view.inserted(0), 1) for view in (a, other, result))
        b.matmul(*views, accumulate=self.rng.random() < 0.3)

    def _copy(self, b: ProgramBuilder) -> None:
        dtype, kind = self.rng.choice(_TYPES), self.rng.randrange(3)
        result = self._wrote(self._pick(dtype))
        source = self._half(self._pick(dtype, result), kind)
        b.copy(source, self._half(result, kind))

    def _pass(self, b: ProgramBuilder) -> None:
        kind = self.rng.randrange(3)
        result = self._half(self._wrote(self._pick(self.rng.choice(_TYPES))), kind)
        sources = [self._half(self._pick(self.rng.choice(_TYPES), result), kind) for _ in range(2)]
        name = self.rng.choice(("mul", "neg", "move", "maximum"))
        b.vector(name, sources[: 1 if name in ("neg", "move") else 2], result)

    def _reduce(self, b: ProgramBuilder) -> None:
        result = self._wrote(self._pick(DType.FP32))
        source = self._pick(self.rng.choice(_TYPES), result)
        b.vector(self.rng.choice(("amax", "sum")), (source,), result.sliced(1, 3, 1))


def _matrix(dtype: DType) -> Buffer:
    return Buffer(_SIDE * _SIDE * DTYPE_BYTES[dtype])


def run(device: Device, program: Program, stream: Stream) -> list[bytes]:
    """The bytes of the operands that count, after the program on random ones."""
    rng = np.random.default_rng(len(stream.programs))
    given = [rng.integers(0, 256, buffer.size_bytes, np.uint8) for buffer in stream.operands]
    places = {b: device.upload(data) for b, data in zip(stream.operands, given, strict=True)}
    device.execute(program, [places[buffer].address for buffer in program.operands])
    left = [
        device.download(place.address, (place.size_bytes,), np.uint8).tobytes()
        for buffer, place in places.items()
        if buffer not in stream.temporaries
    ]
    for place in places.values():
        device.free(place)
    return left


def moved(seeds: Sequence[int], device: Device) -> tuple[int, int]:
    """(streams whose order changed, temporaries), after all bits were compared."""
    changed = temporaries = 0
    for seed in seeds:
        stream = _Drawing(seed, 14).stream()
        temporaries += len(stream.temporaries)
        plain = joined("stream", stream.programs, (), CONFIG, fuse=False)
        expected = run(device, plain, stream)
        ordered = queued("stream", stream.programs, stream.temporaries, CONFIG)
        assert run(device, ordered, stream) == expected, f"seed {seed}"
        commands = DecodedProgram(plain).commands
        changed += scheduled(commands, CONFIG).order != tuple(range(len(commands)))
    return changed, temporaries


def test_a_search_finds_shorter_orders_and_the_same_ones_again() -> None:
    shorter = 0
    for seed in range(12):
        stream = _Drawing(seed, 14).stream()
        commands = DecodedProgram(joined("s", stream.programs, (), CONFIG, fuse=False)).commands
        plain, found = (scheduled(commands, CONFIG, steps=steps) for steps in (0, 100))
        assert sorted(found.order) == list(range(len(commands)))
        assert found.cycles <= plain.cycles
        assert found == scheduled(commands, CONFIG, steps=100)
        shorter += found.cycles < plain.cycles
    assert shorter


def test_ordered_streams_leave_the_bits_of_the_ops_one_by_one(device: Device) -> None:
    changed, temporaries = moved(range(24), device)
    assert changed > 12
    assert temporaries > 12


@pytest.mark.broad
def test_many_ordered_streams_leave_the_bits_of_the_ops_one_by_one(device: Device) -> None:
    assert moved(range(24, 600), device)[0] > 300


def test_products_and_copies_are_known_as_views() -> None:
    a, b, c = (dense(_matrix(DType.FP32), DType.FP32, (_SIDE, _SIDE)) for _ in range(3))
    builder = ProgramBuilder("views", CONFIG)
    half = c.sliced(1, 8, 8)
    views = [view.inserted(0) for view in (a, b.transposed().sliced(1, 8, 8), half)]
    builder.matmul(*(MatrixView(view, 1) for view in views), accumulate=True)
    builder.copy(a.transposed(), c)
    product, copy = DecodedProgram(builder.program()).commands
    assert isinstance(product, OtherCommand) and isinstance(copy, OtherCommand)
    assert isinstance(product.work, MatrixProduct) and isinstance(copy.work, ElementCopy)
    assert product.work.accumulates and product.work.start is None
    for found, given in zip(
        (product.work.a, product.work.b, product.work.result), views, strict=True
    ):
        assert footprint(found) == footprint(given)
        assert (found.sizes, found.strides[1:]) == (given.sizes, given.strides[1:])
    assert footprint(copy.work.source) == footprint(a)
    assert {copy.work.source.strides, copy.work.result.strides} == {(16, 1), (1, 16)}


def test_footprints_of_columns_share_no_byte_but_their_ranges_meet() -> None:
    whole = dense(_matrix(DType.BF16), DType.BF16, (_SIDE, _SIDE))
    left, right = (footprint(whole.sliced(1, at, 8)) for at in (0, 8))
    assert left.meets(right) and not left.overlaps(right) and not right.overlaps(left)
    middle = footprint(whole.sliced(1, 4, 8))
    assert middle.overlaps(left) and right.overlaps(middle)
    assert not footprint(whole.sliced(0, 0, 8)).meets(footprint(whole.sliced(0, 8, 8)))


def test_an_independent_copy_starts_before_a_product_that_waits() -> None:
    """A pass, the product that reads it, and a copy that neither needs: it goes first."""
    x, y, z, u, v = (dense(_matrix(DType.FP32), DType.FP32, (_SIDE, _SIDE)) for _ in range(5))
    builder = ProgramBuilder("order", CONFIG)
    builder.vector("exp", (x,), y)
    builder.matmul(*(MatrixView(view.inserted(0), 1) for view in (y, y, z)))
    builder.copy(u, v)
    builder.vector("log", (v,), u)
    order = scheduled(DecodedProgram(builder.program()).commands, CONFIG).order
    assert order.index(2) < order.index(1)


def test_nothing_passes_a_command_that_may_fail_by_an_index() -> None:
    x, y = (dense(_matrix(DType.FP32), DType.FP32, (_SIDE, _SIDE)) for _ in range(2))
    index = dense(Buffer(4 * _SIDE * _SIDE), DType.INT32, (_SIDE, _SIDE))
    builder = ProgramBuilder("order", CONFIG)
    builder.vector("exp", (x,), y)
    builder.gather(y, index, x, 0)
    builder.vector("neg", (index,), index)
    commands = DecodedProgram(builder.program()).commands
    assert [access_of(command).is_barrier for command in commands] == [False, True, False]
    assert scheduled(commands, CONFIG).order == (0, 1, 2)
    assert DecodedProgram(builder.program()).commands[1].packet.opcode == Opcode.GATHER  # type: ignore[union-attr]


def test_a_widening_pass_is_left_out_where_passes_read_it() -> None:
    x, wide, y = (
        dense(_matrix(d), d, (_SIDE, _SIDE)) for d in (DType.BF16, DType.FP32, DType.FP32)
    )
    programs = []
    for name, sources, result in (("move", (x,), wide), ("exp", (wide.transposed(),), y)):
        builder = ProgramBuilder("op", CONFIG)
        builder.vector(name, sources, result)
        programs.append(builder.program())
    both = queued("both", programs, (), CONFIG)
    assert both.packet_count == 2 or "move" in both.vector_programs[0]
    assert queued("one", programs, (wide.buffer,), CONFIG).packet_count == 1


def test_operands_share_the_bus_and_none_gets_more_than_another_that_wants_more() -> None:
    assert slowdowns({0: (0.5, 2), 1: (0.4, 1)}) == {0: 1.0, 1: 1.0}
    found = slowdowns({0: (0.6, 2), 1: (0.8, 4), 2: (0.0, 1)})
    assert found[2] == 1.0
    used = {at: share / found[at] for at, share in ((0, 0.6), (1, 0.8))}
    assert sum(used.values()) == pytest.approx(1.0)
    assert used[0] / 2 == pytest.approx(used[1] / 4)
    assert slowdowns({0: (0.2, 2), 1: (1.0, 1)})[1] == pytest.approx(1 / 0.8)
