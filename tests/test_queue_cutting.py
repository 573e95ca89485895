# SPDX-License-Identifier: Apache-2.0
"""Products cut by columns with what follows them: the bits of the whole ones, or no cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from backend_host import CONFIG

from driver.compile import joined, queued
from driver.compile import programs as compiled
from driver.compile.cutting import PartedQueue, cut, uncut
from driver.compile.decoding import DecodedProgram
from driver.compile.passes import AnyCommand, MatrixProduct, OtherCommand
from driver.compile.scheduling import scheduled
from driver.config import HwConfig
from driver.isa import DTYPE_BYTES, DType, Opcode
from driver.lower.builder import ProgramBuilder
from driver.lower.operands import MatrixView
from driver.runtime import Buffer, Device, Program, TensorView
from driver.runtime.views import dense
from golden.backend import CmodelBackend

_TOKENS, _HEADS, _WIDTH, _INNER = 4, 4, 8, 16
_COLUMNS = _HEADS * _WIDTH
PLAIN = CONFIG.model_copy(update={"fusion": False})


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with Device(CmodelBackend(CONFIG, threads=1), CONFIG) as opened:
        yield opened


@dataclass
class Ops:
    """Programs of one pass, copy or product each, and the buffers between them."""

    programs: list[Program] = field(default_factory=list)
    temporaries: list[Buffer] = field(default_factory=list)

    def add(self, emit: Callable[[ProgramBuilder], None]) -> None:
        """One more program."""
        builder = ProgramBuilder("op", CONFIG)
        emit(builder)
        self.programs.append(builder.program())

    def temp(self, dtype: DType, *sizes: int) -> TensorView:
        """Memory between ops."""
        view = tensor(dtype, *sizes)
        self.temporaries.append(view.buffer)
        return view

    def product(self, a: TensorView, b: TensorView, result: TensorView) -> None:
        """result = a·b"""
        views = [view if view.rank == 3 else view.inserted(0) for view in (a, b, result)]
        self.add(lambda builder: builder.matmul(*(MatrixView(view, 1) for view in views)))

    def run(self, name: str, *views: TensorView) -> None:
        """A pass; the last view is its result."""
        self.add(lambda builder: builder.vector(name, views[:-1], views[-1]))


def tensor(dtype: DType, *sizes: int) -> TensorView:
    count = int(np.prod(sizes))
    return dense(Buffer(count * DTYPE_BYTES[dtype]), dtype, sizes)


def by_heads(view: TensorView) -> TensorView:
    """[tokens, columns] as [heads, tokens, width]."""
    return view.split(1, (_HEADS, _WIDTH)).permuted((1, 0, 2))


def attention(dtype: DType) -> tuple[Ops, TensorView]:
    """A product, elementwise ops on flat, head-wise and half views of it, a product of each head,
    a reduction of its rows, and the heads side by side."""
    ops = Ops()
    x, weight = tensor(dtype, _TOKENS, _INNER), tensor(dtype, _COLUMNS, _INNER)
    keys, out = tensor(dtype, _HEADS, _TOKENS, _WIDTH), tensor(dtype, _TOKENS, _HEADS, _TOKENS)
    q, flat = (ops.temp(dtype, _TOKENS, _COLUMNS) for _ in range(2))
    ops.product(x, weight.transposed(), q)
    ops.run("neg", *(view.flattened() or view for view in (q, flat)))
    half = ops.temp(dtype, _HEADS, _TOKENS, _WIDTH)
    first, second = (by_heads(q).sliced(2, at, _WIDTH // 2) for at in (0, _WIDTH // 2))
    ops.run("neg", second, half.sliced(2, 0, _WIDTH // 2))
    ops.add(lambda builder: builder.copy(first, half.sliced(2, _WIDTH // 2, _WIDTH // 2)))
    turned = ops.temp(dtype, _HEADS, _TOKENS, _WIDTH)
    ops.run("mul_add", by_heads(q), by_heads(flat), half, turned)
    scores = ops.temp(dtype, _HEADS, _TOKENS, _TOKENS)
    ops.product(turned, keys.transposed(), scores)
    best = ops.temp(DType.FP32, _HEADS, _TOKENS, 1)
    ops.run("amax", scores, best)
    scaled = ops.temp(dtype, _HEADS, _TOKENS, _TOKENS)
    ops.run("mul", scores, best, scaled)
    ops.add(lambda builder: builder.copy(scaled.permuted((1, 0, 2)), out))
    return ops, out


def bits(device: Device, program: Program, operands: Sequence[Buffer]) -> list[bytes]:
    """The bytes of the operands after the program; numbers near 1 before it."""
    rng = np.random.default_rng(1)
    given = [rng.normal(size=buffer.size_bytes // 2).astype(np.float16) for buffer in operands]
    places = {b: device.upload(data) for b, data in zip(operands, given, strict=True)}
    device.execute(program, [places[buffer].address for buffer in program.operands])
    left = [
        device.download(p.address, (p.size_bytes,), np.uint8).tobytes() for p in places.values()
    ]
    for place in places.values():
        device.free(place)
    return left


Arrange = Callable[
    [Sequence[AnyCommand], frozenset[Buffer], HwConfig], tuple[list[AnyCommand], tuple[Buffer, ...]]
]


def cut_by(widths: Sequence[int]) -> Arrange:
    """Cuts the first product so, whatever the estimate says."""

    def arranged(
        commands: Sequence[AnyCommand], temporaries: frozenset[Buffer], hw: HwConfig
    ) -> tuple[list[AnyCommand], tuple[Buffer, ...]]:
        found = cut_first(commands, temporaries, widths)
        assert found is not None
        order = scheduled(found.commands, hw, found.parts).order
        return [found.commands[at] for at in order], found.temporaries

    return arranged


def cut_first(
    commands: Sequence[AnyCommand], temporaries: frozenset[Buffer], widths: Sequence[int]
) -> PartedQueue | None:
    numbers = [
        at
        for at, one in enumerate(commands)
        if isinstance(one, OtherCommand) and isinstance(one.work, MatrixProduct)
    ]
    return cut(uncut(commands), numbers[0], widths, temporaries)


@pytest.mark.parametrize("dtype", [DType.FP32, DType.BF16])
@pytest.mark.parametrize("hw", [CONFIG, PLAIN], ids=["fused", "plain"])
@pytest.mark.parametrize("widths", [(8, 8, 8, 8), (16, 8, 8), (24, 8), (8, 24)])
def test_a_cut_product_and_all_that_follows_leave_the_same_bits(
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
    dtype: DType,
    hw: HwConfig,
    widths: tuple[int, ...],
) -> None:
    ops, out = attention(dtype)
    plain = joined("attention", ops.programs, ops.temporaries, hw, fuse=False)
    expected = bits(device, plain, plain.operands)
    monkeypatch.setattr(compiled, "arranged", cut_by(widths))
    found = queued("attention", ops.programs, ops.temporaries, hw)
    assert found.operands == plain.operands and out.buffer in found.operands
    assert bits(device, found, plain.operands) == expected
    products = [packet for packet in found.packets if packet.opcode == Opcode.MATMUL]
    assert [packet.params[2] for packet in products if packet.params[3] == 1] != []
    assert sum(packet.params[2] for packet in products if packet.params[1] == _INNER) == _COLUMNS
    heads = [p.params[3] for p in products if p.params[1] == _WIDTH]
    assert sorted(heads) == sorted(width // _WIDTH for width in widths)  # cut to the end


def test_parts_that_are_no_whole_heads_are_no_cut() -> None:
    ops, _ = attention(DType.FP32)
    plain = DecodedProgram(joined("attention", ops.programs, ops.temporaries, CONFIG, fuse=False))
    assert cut_first(plain.commands, plain.temporaries, (16, 16)) is not None
    assert cut_first(plain.commands, plain.temporaries, (12, 20)) is None


@pytest.mark.parametrize("reader", ["whole rows", "no temporary", "transposed"])
def test_a_product_that_is_needed_as_a_whole_is_not_cut(reader: str) -> None:
    ops = Ops()
    x, weight = tensor(DType.FP32, _TOKENS, _INNER), tensor(DType.FP32, _INNER, _COLUMNS)
    q = ops.temp(DType.FP32, _TOKENS, _COLUMNS)
    ops.product(x, weight, q)
    if reader == "whole rows":
        ops.run("amax", q, tensor(DType.FP32, _TOKENS, 1))
    elif reader == "transposed":  # as columns of another product
        ops.product(q, tensor(DType.FP32, _COLUMNS, _TOKENS), tensor(DType.FP32, _TOKENS, _TOKENS))
    else:
        ops.run("neg", q, tensor(DType.FP32, _TOKENS, _COLUMNS))
    temporaries = [] if reader == "no temporary" else ops.temporaries
    plain = DecodedProgram(joined("whole", ops.programs, temporaries, CONFIG, fuse=False))
    found = cut_first(plain.commands, plain.temporaries, (16, 16))
    assert found is None


def test_a_part_does_not_write_columns_before_its_own() -> None:
    ops = Ops()
    x, weight = tensor(DType.FP32, _TOKENS, _INNER), tensor(DType.FP32, _INNER, _COLUMNS)
    q, negative = (ops.temp(DType.FP32, _TOKENS, _COLUMNS) for _ in range(2))
    ops.product(x, weight, q)
    ops.run("neg", q, negative)
    halves = negative.split(1, (2, _COLUMNS // 2)).sliced(2, 0, _WIDTH // 2)
    ops.run("neg", halves, q.sliced(1, 0, _WIDTH).split(1, (2, _WIDTH // 2)))
    ops.run("neg", negative, tensor(DType.FP32, _TOKENS, _COLUMNS))
    plain = DecodedProgram(joined("own", ops.programs, ops.temporaries, CONFIG, fuse=False))
    assert cut_first(plain.commands, plain.temporaries, (16, 16)) is None


def test_a_queue_with_a_long_product_is_cut_where_that_is_shorter(device: Device) -> None:
    ops = Ops()
    x, weight = tensor(DType.BF16, 32, 64), tensor(DType.BF16, 64, 2048)
    q, out = ops.temp(DType.BF16, 32, 2048), tensor(DType.BF16, 32, 2048)
    ops.product(x, weight, q)
    ops.run("exp", q, out)
    plain = joined("long", ops.programs, ops.temporaries, CONFIG, fuse=False)
    found = queued("long", ops.programs, ops.temporaries, CONFIG)
    assert found.packet_count > plain.packet_count == 2
    assert bits(device, found, plain.operands) == bits(device, plain, plain.operands)
    again = queued("long", ops.programs, ops.temporaries, CONFIG)
    assert again.digest == found.digest
