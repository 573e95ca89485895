# SPDX-License-Identifier: Apache-2.0
"""Passes fused into one leave the bits that they leave one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from backend_host import CONFIG
from fusion_host import Memory, RandomPasses, executed, random_passes

from driver.compile import (
    Command,
    VectorPass,
    composing,
    fused,
    fused_program,
    joined,
    vector_traffic,
)
from driver.compile.decoding import vector_commands
from driver.isa import DType, Opcode
from driver.isa.micro import MAX_RESULTS, MAX_SOURCES, MicroOp, Reduce
from driver.isa.programs import PROGRAMS
from driver.lower import Arg, lower
from driver.lower.builder import ProgramBuilder
from driver.runtime import Buffer, Device, Program, TensorView, loaded
from driver.runtime.views import dense
from golden.backend import CmodelBackend
from golden.packets import third_opinion_packet

PLAIN = CONFIG.model_copy(update={"fusion": False})


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with Device(CmodelBackend(CONFIG, threads=1), CONFIG) as opened:
        yield opened


def kept(given: RandomPasses, memory: Memory) -> list[bytes]:
    return [bytes(data) for at, data in memory.items() if at not in given.temporaries]


def checked(seed: int) -> list[Command]:
    """The fused passes of a random list, after their bits were compared by integers."""
    given = random_passes(seed)
    commands = fused(given.commands, given.temporaries, CONFIG)
    expected = kept(given, executed(given.commands, given.memory))
    for at_once in (True, False):
        found = kept(given, executed(commands, given.memory, at_once=at_once))
        assert found == expected, f"seed {seed}"
    return commands


def fewer(seeds: Sequence[int]) -> tuple[int, Counter[str]]:
    """(passes saved, what fused passes there were)."""
    saved, kinds = 0, Counter[str]()
    for seed in seeds:
        commands = checked(seed)
        saved += len(random_passes(seed).commands) - len(commands)
        for one in commands:
            assert isinstance(one, VectorPass)
            if "+" not in one.program.name:
                continue
            kinds[f"{len(one.results)} results"] += 1
            kinds[f"{len(one.sources)} sources"] += 1
            kinds["reduces" if one.program.reduce is not Reduce.NONE else "plain"] += 1
    return saved, kinds


def test_random_passes_keep_their_bits() -> None:
    saved, kinds = fewer(range(150))
    assert saved > 50
    assert all(kinds[f"{number} results"] for number in range(1, MAX_RESULTS + 1))
    assert all(kinds[f"{number} sources"] for number in range(1, MAX_SOURCES + 1))
    assert kinds["reduces"]


@pytest.mark.broad
def test_many_random_passes_keep_their_bits() -> None:
    assert fewer(range(150, 3000))[0] > 2000


# ---------------------------------------------------------------------- on the cmodel
def program_of(given: RandomPasses) -> Program:
    """The passes as a lowered op has them."""
    builder = ProgramBuilder("passes", CONFIG, operands=given.operands)
    for buffer in given.temporaries:
        builder.keep(buffer, "temporary", b"", ())
    for one in given.commands:
        builder.vector(one.program, one.sources, one.results, *one.imms)
    return builder.program()


def run(device: Device, program: Program, given: Sequence[bytes]) -> list[bytes]:
    """The bytes of the operands after the program."""
    places = [device.upload(np.frombuffer(data, np.uint8)) for data in given]
    device.execute(program, [place.address for place in places])
    left = [device.download(p.address, (p.size_bytes,), np.uint8).tobytes() for p in places]
    for place in places:
        device.free(place)
    return left


def reads_unwritten(given: RandomPasses) -> bool:
    """Whether results depend on what temporaries hold at the start: any bytes on a device."""
    rng = np.random.default_rng(1)
    found = []
    for fill in (0, 0x3C, 0xFF, None):
        other = dict(given.memory)
        for at in given.temporaries:
            size = len(other[at])
            other[at] = bytearray(rng.bytes(size) if fill is None else bytes([fill]) * size)
        found.append(kept(given, executed(given.commands, other)))
    return any(one != found[0] for one in found)


def test_fused_programs_leave_the_same_bytes_on_the_cmodel(device: Device) -> None:
    saved = 0
    for seed in range(60):
        given = random_passes(seed)
        if reads_unwritten(given):
            continue
        start = [bytes(given.memory[buffer]) for buffer in given.operands]
        program = program_of(given)
        fewer_passes = fused_program(program, CONFIG)
        saved += vector_commands(program) - vector_commands(fewer_passes)
        expected = kept(given, executed(given.commands, given.memory))
        assert run(device, program, start) == expected
        assert run(device, fewer_passes, start) == expected, f"seed {seed}"
    assert saved > 25
    assert device.programs_loaded > 25


def test_a_program_taken_apart_and_put_together_is_the_same() -> None:
    for seed in range(40):
        program = program_of(random_passes(seed))
        same = joined(program.op, [program], (), CONFIG, fuse=False)
        assert same.packets == program.packets
        assert same.operands == program.operands


# ---------------------------------------------------------------------- planted errors
@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16, DType.INT8, DType.UINT8])
def test_a_rounding_left_out_is_seen(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    x, between, y = dense(Buffer(64), DType.FP32, (8,)), dense(Buffer(64), dtype, (8,)), Buffer(64)
    out = dense(y, DType.FP32, (8,))
    passes = (step("exp", x, between), step("mul", between, between, out))
    values = np.linspace(-1.5, 9.7, 8, dtype=np.float32).tobytes()
    memory = {x.buffer: bytearray(values), between.buffer: bytearray(64), y: bytearray(64)}
    expected = executed(passes, memory)[y]

    def result() -> bytearray:
        (one,) = fused(passes, frozenset((between.buffer,)), CONFIG)
        return executed((one,), memory)[y]

    assert result() == expected
    monkeypatch.setattr(
        composing._Emitted, "stored_and_loaded", lambda _self, value, _through: value
    )
    assert result() != expected


@pytest.mark.parametrize("first", [DType.INT8, DType.UINT8])
def test_a_byte_read_as_the_other_type_is_cut_again(first: DType) -> None:
    """INT8 extends the sign and UINT8 does not: what one of them holds, the other does not."""
    other = DType.UINT8 if first is DType.INT8 else DType.INT8
    x, a, b, out = (view(dtype) for dtype in (DType.INT32, first, other, DType.INT32))
    passes = [step("move", x, a), step("move", a, b), step("move", b, out)]
    memory = {one.buffer: bytearray(256) for one in (a, b, out)}
    memory[x.buffer] = bytearray(range(128, 256)) * 2
    (one,) = fused(passes, frozenset((a.buffer, b.buffer)), CONFIG)
    assert executed([one], memory)[out.buffer] == executed(passes, memory)[out.buffer]
    memory[a.buffer] = bytearray(range(128, 256)) * 2
    (one,) = fused(passes[1:], frozenset((b.buffer,)), CONFIG)
    assert executed([one], memory)[out.buffer] == executed(passes[1:], memory)[out.buffer]


@pytest.mark.parametrize("first", [DType.FP16, DType.BF16])
def test_a_source_of_16_bits_is_rounded_to_the_other_type(first: DType) -> None:
    other = DType.BF16 if first is DType.FP16 else DType.FP16
    x, between, out = view(first), view(other), view()
    passes = [step("move", x, between), step("move", between, out)]
    memory = {one.buffer: bytearray(256) for one in (between, out)}
    memory[x.buffer] = bytearray(range(256))
    (one,) = fused(passes, frozenset((between.buffer,)), CONFIG)
    assert executed([one], memory)[out.buffer] == executed(passes, memory)[out.buffer]


def test_tables_of_several_passes_do_not_mix() -> None:
    x, out = dense(Buffer(64), DType.FP32, (16,)), dense(Buffer(64), DType.FP32, (16,))
    between = [dense(Buffer(64), DType.FP32, (16,)) for _ in range(4)]
    passes = (
        *(step("tanh", x, between[0]), step("neg", x, between[1])),
        *(step("tanh", between[1], between[2]), step("tanh", x, between[3])),
        step("where", *between[:1], *between[2:], out),
    )
    memory = {view.buffer: bytearray(64) for view in (*between, out)}
    memory[x.buffer] = bytearray(np.linspace(-3, 11, 16, dtype=np.float32).tobytes())
    expected = executed(passes, memory)[out.buffer]
    (one,) = fused(passes, frozenset(view.buffer for view in between), CONFIG)
    assert isinstance(one, VectorPass)
    assert sum(line.op is MicroOp.SEGMENT for line in one.program.code) >= 2
    assert executed((one,), memory)[out.buffer] == expected


# ---------------------------------------------------------------------- single cases
def step(name: str, *views: TensorView, imms: tuple[int, ...] = ()) -> VectorPass:
    """A pass of a program of the table; the last view is its result."""
    program = PROGRAMS[name]
    return VectorPass(program, views[:-1], views[-1:], imms or (0,) * len(program.imms))


def view(dtype: DType = DType.FP32, sizes: tuple[int, ...] = (4, 6)) -> TensorView:
    return dense(Buffer(256), dtype, sizes)


def count(passes: Sequence[VectorPass], *temporaries: TensorView) -> int:
    """Passes that are left."""
    return len(fused(passes, frozenset(one.buffer for one in temporaries), CONFIG))


def test_a_chain_becomes_one_pass_and_needs_no_memory_between() -> None:
    x, a, b, out = (view() for _ in range(4))
    passes = [step("exp", x, a), step("mul", a, x, b), step("sqrt", b, out)]
    (one,) = fused(passes, frozenset((a.buffer, b.buffer)), CONFIG)
    assert isinstance(one, VectorPass)
    assert (one.sources, one.results) == ((x.flattened(),), (out.flattened(),))
    assert one.program.name == "exp+mul+sqrt"


def test_what_something_else_reads_is_stored() -> None:
    x, a, out, other = (view() for _ in range(4))
    passes = [step("exp", x, a), step("sqrt", a, out)]
    (one,) = fused(passes, frozenset(), CONFIG)
    assert isinstance(one, VectorPass) and len(one.results) == 2
    rows = view(sizes=(4, 1))
    passes += [step("sum", a, rows), step("mul", x, a.permuted((0, 1)), other)]
    assert count(passes, a) == 2


def test_a_source_that_is_overwritten_in_another_order_is_not_fused() -> None:
    square = view(sizes=(4, 4))
    a, out = view(sizes=(4, 4)), view(sizes=(4, 4))
    turned = square.permuted((1, 0))
    assert count([step("exp", turned, a), step("sqrt", a, square)], a) == 2
    assert count([step("exp", square, a), step("sqrt", a, square)], a) == 1
    assert count([step("exp", square, a), step("sqrt", a.permuted((1, 0)), out)], a) == 1


def test_a_reduction_ends_a_pass() -> None:
    x, a, out = view(), view(), view()
    rows = view(sizes=(4, 1))
    wide = rows.expanded((4, 6))
    assert wide is not None
    assert count([step("exp", x, a), step("sum", a, rows)], a) == 1
    assert count([step("sum", x, rows), step("mul", x, wide, out)], rows) == 2
    assert count([step("exp", x, a), step("sum", a, rows), step("mul", a, wide, out)], a, rows) == 3


def test_rows_stay_rows() -> None:
    """tril reads the position in its row, so its rows are those of the fused pass."""
    x, a, out = view(sizes=(4, 6)), view(sizes=(4, 6)), view(sizes=(4, 6))
    limit = view(DType.INT32, (4, 1)).expanded((4, 6))
    assert limit is not None
    (one,) = fused([step("tril", x, limit, a), step("exp", a, out)], frozenset((a.buffer,)), CONFIG)
    assert isinstance(one, VectorPass) and one.sizes == (4, 6)


def test_five_tensors_are_too_many() -> None:
    tensors = [view() for _ in range(5)]
    a, out = view(), view()
    chain = [step("mul_mul", *tensors[:3], a), step("mul_mul", a, *tensors[3:], out)]
    assert count(chain, a) == 2


def test_seven_immediates_leave_a_constant() -> None:
    x, a, b, out = (view() for _ in range(4))
    words = tuple(range(11, 18))
    passes = [
        step("decayed_sgd", x, x, a, imms=words[:3]),
        step("decayed_sgd", a, x, b, imms=words[3:6]),
        step("affine", b, out, imms=(words[6], 19)),
    ]
    (one,) = fused(passes, frozenset((a.buffer, b.buffer)), CONFIG)
    assert isinstance(one, VectorPass)
    assert one.imms == words[:6]
    assert {words[6], 19} <= set(one.program.constants)
    assert not set(words[:6]) & set(one.program.constants)  # it serves other ones as well


def test_a_constant_that_the_device_computes_is_no_constant_of_the_passes() -> None:
    sizes = (40, 60)
    word = view(sizes=(1, 1)).expanded(sizes)
    assert word is not None
    *tensors, out = (dense(Buffer(1 << 14), DType.FP32, sizes) for _ in range(9))
    between = tensors[4:]
    same = composing._STAND_INS
    passes = [
        step("mul_mul", tensors[0], tensors[1], word, between[0]),
        step("mul_mul", tensors[2], tensors[3], between[0], between[1]),
        step("decayed_sgd", between[1], between[1], between[2], imms=(1, 2, 3)),
        step("decayed_sgd", between[2], between[2], between[3], imms=(4, 5, 6)),
        step("affine", between[3], out, imms=(same, 7)),
    ]
    (one,) = fused(passes, frozenset(one.buffer for one in between), CONFIG)
    assert isinstance(one, VectorPass)
    (patched,) = one.words
    assert same in one.program.constants
    assert one.program.constants[patched.number] not in (same, *range(8))


def test_the_words_of_an_int64_are_followed() -> None:
    x, wide, out = view(DType.INT32), view(DType.INT64, (4, 6)), view(DType.INT32)
    high = TensorView(wide.buffer, 4, DType.INT32, wide.sizes, tuple(2 * n for n in wide.strides))
    assert count([step("move", x, wide), step("move", high, out)], wide) == 1
    memory = {x.buffer: bytearray(range(256)), wide.buffer: bytearray(256)}
    memory[out.buffer] = bytearray(256)
    passes = [step("move", x, wide), step("move", high, out)]
    (one,) = fused(passes, frozenset((wide.buffer,)), CONFIG)
    assert executed([one], memory)[out.buffer] == executed(passes, memory)[out.buffer]


def test_fusion_can_be_turned_off() -> None:
    program = adam(8)
    assert fused_program(program, PLAIN) is program
    assert vector_commands(fused_program(program, CONFIG)) < vector_commands(program)


# ---------------------------------------------------------------------- ops
ADAM = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8}


def adam(elements: int) -> Program:
    """One parameter's step of AdamW."""
    state = [dense(Buffer(4 * elements), DType.FP32, (elements,)) for _ in range(4)]
    step_number = dense(Buffer(4), DType.FP32, ())
    options: dict[str, Arg] = {**ADAM, "maximize": False, "decoupled": True}
    p, _, m, v = state
    return lower("npu.adam_.default", (*state, step_number), options, (p, m, v), CONFIG)


def test_adamw_reads_four_tensors_and_writes_three(device: Device) -> None:
    elements = 3000
    program = adam(elements)
    one_pass = fused_program(program, CONFIG)
    large = [packet for packet in one_pass.packets if packet.opcode == Opcode.VECTOR]
    assert [Opcode(packet.opcode) for packet in one_pass.packets[-2:]] == [
        Opcode.LOAD,
        Opcode.VECTOR,
    ]
    assert len(large) == vector_commands(program) - 4
    assert vector_traffic(program).size_bytes // elements == 48
    assert vector_traffic(one_pass).size_bytes // elements == 28
    rng = np.random.default_rng(5)
    tensors = rng.standard_normal((4, elements)).astype(np.float32)
    tensors[3] **= 2
    tensors[:, :40] = rng.integers(0, 1 << 32, (4, 40), np.uint32).view(np.float32)
    start = [x.tobytes() for x in tensors] + [np.float32(7).tobytes()]
    expected = run(device, program, start)
    assert run(device, one_pass, start) == expected
    assert expected != start


def test_a_program_that_an_op_loads_has_a_third_opinion(device: Device) -> None:
    program = fused_program(adam(1000), CONFIG)
    places = [device.upload(np.full(1000, 0.5 + at, np.float32)) for at in range(5)]
    with loaded(device, program, [place.address for place in places]) as bound:
        *before, last = bound.packets
        device.submit(before)
        start = device.download(0, (CONFIG.memory.limit,), np.uint8)

        def read(address: int, size_bytes: int) -> bytes:
            return start[address : address + size_bytes].tobytes()

        device.submit([last])
    for number, place in enumerate((places[0], places[2], places[3])):
        (found,) = device.download(place.address + 4 * 77, (1,), np.uint32)
        opinions = [third_opinion_packet(last, read, (77,), result, before) for result in range(3)]
        assert int(found) in opinions, number
    assert len(set(opinions)) == 3
    for place in places:
        device.free(place)
