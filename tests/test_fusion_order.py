# SPDX-License-Identifier: Apache-2.0
"""What fusion decides by: which places share bytes, who reads a temporary, what commands write."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, product

import pytest
from backend_host import CONFIG
from fusion_host import Memory, executed

from driver.compile import VectorPass, fused, fused_program
from driver.compile.decoding import DecodedProgram
from driver.compile.places import Place, may_overlap, share_only_by_index
from driver.isa import DType, Opcode, flag_field
from driver.isa.programs import PROGRAMS
from driver.lower import lower
from driver.runtime import Buffer, TensorView
from driver.runtime.views import dense


def step(name: str, *views: TensorView) -> VectorPass:
    """A pass of a program of the table; the last view is its result."""
    return VectorPass(PROGRAMS[name], views[:-1], views[-1:], (0,) * len(PROGRAMS[name].imms))


def view(dtype: DType = DType.FP32, sizes: tuple[int, ...] = (4, 4)) -> TensorView:
    return dense(Buffer(256), dtype, sizes)


def kept_bits(passes: list[VectorPass], *temporaries: TensorView) -> int:
    """How many passes are left, after what they leave outside of temporaries was compared."""
    free = frozenset(one.buffer for one in temporaries)
    rng = random.Random(1)
    memory: Memory = {
        one.buffer: bytearray(rng.randbytes(one.buffer.size_bytes))
        for command in passes
        for one in (*command.sources, *command.results)
    }
    commands = fused(passes, free, CONFIG)
    found, expected = executed(commands, memory), executed(passes, memory)
    assert all(found[buffer] == expected[buffer] for buffer in memory if buffer not in free)
    return len(commands)


# ---------------------------------------------------------------------- places
def bytes_of(where: Place, sizes: tuple[int, ...]) -> dict[tuple[int, ...], set[int]]:
    """The bytes of each element."""
    found = {}
    for index in product(*map(range, sizes)):
        first = where.offset + sum(at * n for at, n in zip(index, where.steps, strict=True))
        found[index] = set(range(first, first + where.width))
    return found


def random_place(rng: random.Random, buffer: Buffer, rank: int) -> Place:
    steps = tuple(rng.choice((0, 1, 2, 3, 4, 6, 8, 12)) for _ in range(rank))
    return Place(buffer, rng.randrange(40), steps, rng.choice((1, 2, 4, 8)))


def test_places_that_share_bytes_are_seen() -> None:
    rng, buffer, seen = random.Random(3), Buffer(512), Counter[str]()
    for _ in range(20_000):
        sizes = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
        first, second = (random_place(rng, buffer, len(sizes)) for _ in range(2))
        if rng.random() < 0.5:
            second = Place(buffer, first.offset + rng.randint(-9, 9), first.steps, second.width)
        own, other = bytes_of(first, sizes), bytes_of(second, sizes)
        shared = [a == b for a, b in product(own, other) if own[a] & other[b]]
        if shared:
            assert may_overlap(first, second, sizes), (first, second, sizes)
        seen["apart"] += not may_overlap(first, second, sizes)
        if share_only_by_index(first, second, sizes):
            assert all(shared), (first, second, sizes)
            assert not any(own[a] & own[b] for a, b in combinations(own, 2))
            seen["by index"] += bool(shared)
    assert seen["apart"] > 1000, seen
    assert seen["by index"] > 200, seen


# ---------------------------------------------------------------------- values
@pytest.mark.parametrize("stored", [DType.FP16, DType.BF16])
def test_a_value_that_is_read_as_another_type_goes_through_memory(stored: DType) -> None:
    other = DType.BF16 if stored is DType.FP16 else DType.FP16
    x, between, out = view(), view(stored), view()
    read = TensorView(between.buffer, 0, other, between.sizes, between.strides)
    assert kept_bits([step("move", x, between), step("move", read, out)], between) == 2


def test_an_int64_that_is_read_as_such_stays_in_a_register() -> None:
    x, wide, out = view(DType.INT32), view(DType.INT64), view(DType.INT32)
    assert kept_bits([step("move", x, wide), step("move", wide, out)], wide) == 1


def test_a_word_of_16_bits_is_no_constant_of_a_program() -> None:
    sizes = (40, 60)
    word = view(DType.BF16, (1, 1)).expanded(sizes)
    assert word is not None
    *tensors, between, out = (dense(Buffer(1 << 14), DType.FP32, sizes) for _ in range(6))
    passes = [
        step("mul_mul", tensors[0], tensors[1], word, between),
        step("mul_mul", tensors[2], tensors[3], between, out),
    ]
    commands = fused(passes, frozenset((between.buffer,)), CONFIG)
    assert all(isinstance(one, VectorPass) and not one.words for one in commands)


# ---------------------------------------------------------------------- order
def test_what_a_command_in_between_reads_is_stored() -> None:
    x, t, other, out = (view() for _ in range(4))
    moved = TensorView(t.buffer, 4, DType.FP32, t.sizes, t.strides)
    passes = [step("exp", x, t), step("sqrt", moved, other), step("abs", x, out)]
    assert kept_bits(passes, t) == 2


def test_a_temporary_that_is_used_twice_keeps_its_first_value_for_its_first_reader() -> None:
    x, other, again, made = view(), view(sizes=(1, 1)), view(), view()
    twice = view()
    first_element = twice.sliced(0, 0, 1).sliced(1, 0, 1)
    found = kept_bits(
        [
            step("square", x, twice),
            step("mul", other, first_element, view(sizes=(1, 1))),
            step("neg", again, twice),
            step("mul", x, twice, made),
        ],
        twice,
    )
    assert found == 3


def test_what_a_command_in_between_writes_stays_behind() -> None:
    """Of three passes that write one buffer the last one is the last one afterwards."""
    x, y, out = (view() for _ in range(3))
    moved = TensorView(out.buffer, 4, DType.FP32, out.sizes, out.strides)
    passes = [step("exp", x, out), step("sqrt", y, moved), step("abs", x, out)]
    assert kept_bits(passes) == 3
    a = view()
    passes = [step("exp", x, out), step("sqrt", y, moved), step("abs", x, a)]
    assert kept_bits(passes) == 2


def test_half_of_an_int64_is_overwritten() -> None:
    x, wide = view(DType.INT32), view(DType.INT64)
    low = TensorView(wide.buffer, 0, DType.INT32, wide.sizes, tuple(2 * n for n in wide.strides))
    passes = [step("move", x, wide), step("int_abs", x, low)]
    memory = {x.buffer: bytearray(range(255, -1, -1)), wide.buffer: bytearray(256)}
    found = executed(fused(passes, frozenset(), CONFIG), memory)
    assert found[wide.buffer] == executed(passes, memory)[wide.buffer]


def test_results_that_overlap_are_not_of_one_pass() -> None:
    x, a = view(), view()
    moved = TensorView(a.buffer, 4, DType.FP32, a.sizes, a.strides)
    assert kept_bits([step("exp", x, a), step("sqrt", x, moved)]) == 2


def test_a_reduction_does_not_overwrite_what_is_read() -> None:
    """Not even where a row is one element: docs/isa.md allows it to elementwise passes alone."""
    x, a = view(sizes=(4, 1)), view(sizes=(4, 1))
    assert kept_bits([step("exp", x, a), step("sum", a, x)], a) == 2


# ---------------------------------------------------------------------- commands
def test_a_product_that_accumulates_reads_what_it_writes() -> None:
    tensors = [dense(Buffer(1024), DType.FP32, (8, 8)) for _ in range(3)]
    out = dense(Buffer(1024), DType.FP32, (8, 8))
    program = lower("aten.addmm.default", tuple(tensors), {}, (out,), CONFIG)
    products = [one for one in DecodedProgram(program).commands if not isinstance(one, VectorPass)]
    products = [
        one
        for one in products
        if one.packet.opcode == Opcode.MATMUL and flag_field(one.packet.flags, "ACCUMULATE")
    ]
    assert products
    assert all(one.writes <= one.reads for one in products)


def test_a_pass_of_a_program_that_the_op_loads_writes_its_operands() -> None:
    p, g, m, v = (dense(Buffer(4000), DType.FP32, (1000,)) for _ in range(4))
    options = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8}
    step_number = dense(Buffer(4), DType.FP32, ())
    given = {**options, "maximize": False, "decoupled": True}
    program = lower("npu.adam_.default", (p, g, m, v, step_number), given, (p, m, v), CONFIG)
    last = DecodedProgram(fused_program(program, CONFIG)).commands[-1]
    assert not isinstance(last, VectorPass)
    assert {p.buffer, m.buffer, v.buffer} <= last.writes
