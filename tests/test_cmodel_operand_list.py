# SPDX-License-Identifier: Apache-2.0
"""VECTOR with an operand list: random programs on random views against integers; every check."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from cmodel_util import STORAGE, SmallDevice, random_bits
from test_cmodel_vector import View, flag, random_view

from driver.isa import DESCRIPTOR_BYTES, Descriptor, DType, ErrorCode, Opcode, Packet
from driver.isa.image import PROGRAM_RAM, lines_of, pack
from driver.isa.micro import IMMEDIATES, Reduce, VectorProgram
from driver.isa.programs import LINES, PROGRAMS
from golden import softvector
from golden.packets import third_opinion_packet
from tb.seqs.images import EXAMPLE, random_program

IMAGE, LIST = 0x1000, 0x2000
SOURCES = (0x3000, 0x4800, 0x6000, 0x7800)
RESULTS = (0x9000, 0xB000, 0xD000)
LISTED = flag("OPERAND_LIST")


def loaded(device: SmallDevice, program: VectorProgram) -> None:
    device.store(IMAGE, pack(program))
    packet = Packet(Opcode.LOAD, 0, IMAGE, params=(PROGRAM_RAM, lines_of(program)))
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault


def described(device: SmallDevice, views: list[View]) -> None:
    for at, view in enumerate(views):
        descriptor = Descriptor(view.base, view.dtype, view.sizes, view.strides)
        device.describe(LIST + at * DESCRIPTOR_BYTES, descriptor)


def wanted(
    program: VectorProgram, device: SmallDevice, sources: list[View], imms: list[int], sizes: tuple
) -> list[np.ndarray]:
    """The words of each result, before they are stored."""
    arrays = [view.array(device).copy() for view in sources]
    words = [np.zeros(sizes, np.uint32) for _ in range(program.results)]
    for index in np.ndindex(sizes):
        element = [
            softvector.load(view.dtype, int(array[index]))
            for view, array in zip(sources, arrays, strict=True)
        ]
        for array, word in zip(
            words, softvector.run(program, element, imms, index[-1]), strict=True
        ):
            array[index] = word
    if program.reduce is Reduce.NONE:
        return words
    rows = words[0].reshape(-1, sizes[-1])
    folded = [softvector.reduce(program.reduce, row.tolist()) for row in rows]
    return [np.array(folded, np.uint32).reshape(*sizes[:-1], 1)]


@pytest.mark.parametrize("seed", range(120))
def test_random_programs_on_random_views(seed: int) -> None:
    rng, draw = random.Random(seed), np.random.default_rng(seed)
    program, device = random_program(rng), SmallDevice(1 + seed % 2)
    sizes = tuple(int(s) for s in draw.integers(1, 4, draw.integers(1, 6)))
    if seed % 4 == 0:
        sizes = (2, int(draw.integers(17, 80)))
    reduced = sizes if program.reduce is Reduce.NONE else (*sizes[:-1], 1)
    types = [DType(t) for t in draw.choice(list(DType), 7)]
    sources = [
        random_view(draw, SOURCES[at], types[at], sizes, dst=False) for at in range(program.sources)
    ]
    results = [
        random_view(draw, RESULTS[at], types[4 + at], reduced, dst=True)
        for at in range(program.results)
    ]
    for view in [*sources, *results]:
        array = view.array(device)
        array[...] = random_bits(draw, view.dtype, array.shape, specials=0.2)
    loaded(device, program)
    described(device, [*sources, *results])
    imms = draw.integers(0, 1 << 32, IMMEDIATES).tolist()
    words = wanted(program, device, sources, imms, sizes)
    before = device.memory.copy()
    device.model.clear_dirty()
    packet = Packet(Opcode.VECTOR, LISTED, LIST, params=(PROGRAM_RAM, 0, *imms))
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault
    for view, expected in zip(results, words, strict=True):
        stored = [softvector.store(view.dtype, int(word)) for word in expected.flat]
        bits = np.array(stored, STORAGE[view.dtype]).reshape(reduced)
        np.testing.assert_array_equal(view.array(device), bits)
        view.array(device)[...] = 0
    after, device.memory[:] = device.memory.copy(), before
    for view in results:
        view.array(device)[...] = 0
    np.testing.assert_array_equal(device.memory, after)  # nothing else has changed
    pages = set(device.model.dirty_pages())
    assert pages >= {view.base & ~0xFFF for view in results}


def boot(name: str, *views: View, imms: tuple[int, ...] = ()) -> tuple[SmallDevice, Packet]:
    device = SmallDevice()
    described(device, list(views))
    return device, Packet(Opcode.VECTOR, LISTED, LIST, params=(LINES[name], 0, *imms))


X = View(SOURCES[0], DType.FP32, (2, 3), (3, 1))
Y = View(SOURCES[1], DType.FP16, (2, 3), (0, 1))
OUT = View(RESULTS[0], DType.BF16, (2, 3), (3, 1))


def test_a_boot_program_can_have_its_operands_in_a_list() -> None:
    device, packet = boot("mul", X, Y, OUT)
    X.array(device)[...] = np.full((2, 3), 2.5, np.float32).view(np.uint32)
    Y.array(device)[...] = 0x4000  # 2
    before = device.memory.copy()
    read = lambda at, size: before[at - device.BASE : at - device.BASE + size].tobytes()  # noqa: E731
    assert device.run(packet) == ErrorCode.NONE
    assert set(OUT.array(device).flat) == {0x40A0}  # 5
    assert third_opinion_packet(packet, read, (1, 2)) == 0x40A0


def test_results_may_be_sources_element_for_element() -> None:
    device = SmallDevice()
    one, two = (View(at, DType.FP32, (700,), (1,)) for at in SOURCES[:2])
    described(device, [one, two, two, one])
    for view in (one, two):
        view.array(device)[...] = random_bits(np.random.default_rng(view.base), DType.FP32, (700,))
    loaded(device, EXAMPLE)
    second, first = (
        np.array(row, np.uint32)
        for row in zip(
            *(
                softvector.run(EXAMPLE, [int(a), int(b)], [])
                for a, b in zip(one.array(device), two.array(device), strict=True)
            ),
            strict=True,
        )
    )
    packet = Packet(Opcode.VECTOR, LISTED, LIST, params=(PROGRAM_RAM,))
    assert device.run(packet) == ErrorCode.NONE
    np.testing.assert_array_equal(one.array(device), first)
    np.testing.assert_array_equal(two.array(device), second)


def test_immediates_4_and_5_are_zero_without_a_list() -> None:
    device = SmallDevice()
    code = EXAMPLE.code[2:3]
    late = replace(EXAMPLE, sources=0, results=1, code=(replace(code[0], a=29),), constants=())
    loaded(device, late)
    params = (PROGRAM_RAM, 1, 1, 2, 3, 4)
    plain = Packet(Opcode.VECTOR, 0, 0, 0, RESULTS[0], params)
    device.store(RESULTS[0], b"\xff" * 4)
    assert device.run(plain) == ErrorCode.NONE
    assert device.load(RESULTS[0], DType.FP32, 1).tolist() == [0]
    described(device, [View(RESULTS[0], DType.INT32, (1,), (1,))])
    packet = Packet(Opcode.VECTOR, LISTED, LIST, params=(PROGRAM_RAM, 0, 1, 2, 3, 4, 5, 6))
    assert device.run(packet) == ErrorCode.NONE
    assert device.load(RESULTS[0], DType.FP32, 1).tolist() == [6]


FLAGS_TO_BE_ZERO = ("SRC_DTYPE", "DST_DTYPE", "SRC2_DTYPE", "SRC3_DTYPE")
DESC_TO_BE_ZERO = ("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC")


@pytest.mark.parametrize("name", (*FLAGS_TO_BE_ZERO, *DESC_TO_BE_ZERO, "TRANS_A", "ACCUMULATE"))
def test_other_flags_are_reserved(name: str) -> None:
    device, packet = boot("mul", X, Y, OUT)
    assert device.run(replace(packet, flags=LISTED | flag(name))) == ErrorCode.RESERVED_BITS
    missing = replace(packet, flags=LISTED | flag(name), params=(1,))
    assert device.run(missing) == ErrorCode.RESERVED_BITS


BROKEN: dict[str, tuple[ErrorCode, dict[int, bytes], dict[str, object]]] = {
    # what is wrong: the code, bytes in memory, fields of the packet
    "src2": (ErrorCode.RESERVED_BITS, {}, {"src2": 1 << 40}),
    "dst": (ErrorCode.RESERVED_BITS, {}, {"dst": 64}),
    "no program": (ErrorCode.NOT_LOADED, {}, {"params": (PROGRAM_RAM, 1)}),
    "count": (ErrorCode.BAD_PARAM, {}, {"params": (LINES["mul"], 6)}),
    "list misaligned": (ErrorCode.MISALIGNED, {}, {"src1": LIST + 32}),
    "list outside": (ErrorCode.OUT_OF_RANGE, {}, {"src1": 0x11000}),
    "list ends outside": (ErrorCode.OUT_OF_RANGE, {0x10FC0: b""}, {"src1": 0x10FC0}),
    "no such type": (ErrorCode.BAD_DESCRIPTOR, {LIST + 8: b"\x07"}, {}),
    "type beyond a byte": (ErrorCode.BAD_DESCRIPTOR, {LIST + 10: b"\x01"}, {}),
    "no such type of a result": (ErrorCode.BAD_DESCRIPTOR, {LIST + 136: b"\x0f"}, {}),
    "rank 6": (ErrorCode.BAD_DESCRIPTOR, {LIST + 12: b"\x06"}, {}),
    "rank 7": (ErrorCode.BAD_DESCRIPTOR, {LIST + 12: b"\x07"}, {}),
    "reserved": (ErrorCode.BAD_DESCRIPTOR, {LIST + 64 + 60: b"\x01"}, {}),
    "other sizes": (ErrorCode.BAD_DESCRIPTOR, {LIST + 64 + 20: b"\x04"}, {}),
    "result of other sizes": (ErrorCode.BAD_DESCRIPTOR, {LIST + 128 + 20: b"\x02"}, {}),
    "result repeats": (ErrorCode.BAD_DESCRIPTOR, {LIST + 128 + 36: b"\x00"}, {}),
    "data misaligned": (ErrorCode.MISALIGNED, {LIST: b"\x02"}, {}),
    "data outside": (ErrorCode.OUT_OF_RANGE, {LIST + 130: b"\x01"}, {}),
    "first operand before the second": (
        ErrorCode.MISALIGNED,
        {LIST: b"\x02", LIST + 64 + 12: b"\x06"},
        {},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_every_rule_of_a_list_has_its_code_and_nothing_is_written(name: str) -> None:
    code, patches, change = BROKEN[name]
    device, packet = boot("mul", X, Y, OUT)
    assert device.run(packet) == ErrorCode.NONE
    if 0x10FC0 in patches:
        device.describe(0x10FC0, Descriptor(X.base, X.dtype, X.sizes, X.strides))
    for at, data in patches.items():
        device.store(at, data)
    before = device.memory.copy()
    device.model.clear_dirty()
    assert device.run(replace(packet, **change)) == code, device.model.last_fault  # type: ignore[arg-type]
    np.testing.assert_array_equal(device.memory, before)
    assert device.model.dirty_pages() == []


@pytest.mark.parametrize("number", range(3))
def test_a_descriptor_that_cannot_be_read_is_a_bus_error(number: int) -> None:
    device, packet = boot("mul", X, Y, OUT)
    device.model.poison(LIST + 64 * number, 64, True, False)
    assert device.run(packet) == ErrorCode.BUS_READ


def test_four_sources_or_several_results_need_a_list() -> None:
    rng = random.Random(3)
    for _ in range(200):
        program, device = random_program(rng), SmallDevice()
        loaded(device, program)
        packet = Packet(Opcode.VECTOR, 0, 0, 0, RESULTS[0], (PROGRAM_RAM, 1))
        if program.sources > 3 or program.results > 1:
            assert device.run(packet) == ErrorCode.BAD_PARAM
            assert device.run(replace(packet, params=(PROGRAM_RAM, 0))) == ErrorCode.BAD_PARAM
        elif program.reduce is Reduce.NONE and not program.sources:
            assert device.run(packet) == ErrorCode.NONE
    assert PROGRAMS  # the boot programs fit the plain form
    assert all(p.sources <= 3 and p.results == 1 for p in PROGRAMS.values())
