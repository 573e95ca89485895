# SPDX-License-Identifier: Apache-2.0
"""VECTOR packets on random views against the interpreter in integers, element by element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from cmodel_util import STORAGE, SmallDevice, random_bits

from driver.isa import DTYPE_BYTES, FLAGS, Descriptor, DType, ErrorCode, Opcode, Packet
from driver.isa.micro import PLAIN_SOURCES, Reduce, VectorProgram
from driver.isa.programs import LINES, PROGRAMS
from golden import softvector

BASES = (0x2000, 0x5000, 0x8000)
DST = 0xB000
DESCRIPTORS = (0x1000, 0x1040, 0x1080, 0x10C0)
TYPE_FLAGS = ("SRC_DTYPE", "SRC2_DTYPE", "SRC3_DTYPE")
DESC_FLAGS = ("SRC1_DESC", "SRC2_DESC", "SRC3_DESC")
REDUCING = [name for name, program in PROGRAMS.items() if program.reduce is not Reduce.NONE]
LONG = 2000
"""Elements of a row that needs several blocks."""


@dataclass(frozen=True)
class View:
    """An operand: where, of what type, with which strides in elements."""

    base: int
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, device: SmallDevice) -> npt.NDArray[np.unsignedinteger]:
        """The bits, in place."""
        flat = device.memory[self.base - device.BASE :]
        flat = flat[: len(flat) // 8 * 8].view(STORAGE[self.dtype])
        steps = [stride * DTYPE_BYTES[self.dtype] for stride in self.strides]
        return np.lib.stride_tricks.as_strided(flat, self.sizes, steps)


def flag(name: str, value: int = 1) -> int:
    return value << FLAGS[name].lsb


def vector_packet(
    program: VectorProgram,
    sources: list[View],
    dst: View,
    imms: list[int],
    device: SmallDevice | None,
) -> Packet:
    """With descriptors put into `device`; with a count when that is None."""
    flags = flag("DST_DTYPE", dst.dtype)
    addresses = [0, 0, 0]
    for i, view in enumerate(sources):
        flags |= flag(TYPE_FLAGS[i], view.dtype)
        addresses[i] = view.base
    target = dst.base
    if device is not None:
        flags |= flag("DST_DESC")
        for i, view in enumerate([*sources, dst]):
            descriptor = Descriptor(view.base, view.dtype, view.sizes, view.strides)
            device.describe(DESCRIPTORS[i], descriptor)
        for i in range(len(sources)):
            flags |= flag(DESC_FLAGS[i])
            addresses[i] = DESCRIPTORS[i]
        target = DESCRIPTORS[len(sources)]
    count = int(np.prod(dst.sizes)) if device is None else 0
    params = (LINES[program.name], count, *imms, addresses[2] & 0xFFFF_FFFF, addresses[2] >> 32)
    return Packet(Opcode.VECTOR, flags, addresses[0], addresses[1], target, params)


def expected(
    program: VectorProgram, device: SmallDevice, sources: list[View], dst: View, imms: list[int]
) -> npt.NDArray[np.unsignedinteger]:
    """dst's bits by integers only."""
    arrays = [view.array(device).copy() for view in sources]
    shape = arrays[0].shape if arrays else dst.sizes
    words = np.zeros(shape, np.uint32)
    for index in np.ndindex(shape):
        element = [
            softvector.load(view.dtype, int(array[index]))
            for view, array in zip(sources, arrays, strict=True)
        ]
        (words[index],) = softvector.run(program, element, imms, index[-1])
    if program.reduce is not Reduce.NONE:
        rows = [
            softvector.reduce(program.reduce, row.tolist()) for row in words.reshape(-1, shape[-1])
        ]
        words = np.array(rows, np.uint32).reshape(dst.sizes)
    stored = [softvector.store(dst.dtype, int(word)) for word in words.flat]
    return np.array(stored, STORAGE[dst.dtype]).reshape(dst.sizes)


def random_view(
    rng: np.random.Generator, base: int, dtype: DType, sizes: tuple[int, ...], *, dst: bool
) -> View:
    """Dense, permuted, with gaps, or (a source) broadcast."""
    order = rng.permutation(len(sizes)) if rng.random() < 0.4 else np.arange(len(sizes))
    strides, step = [0] * len(sizes), int(rng.integers(1, 3)) if rng.random() < 0.3 else 1
    for d in reversed(order):
        strides[d] = step
        step *= sizes[d]
    if not dst:
        strides = [0 if rng.random() < 0.15 else stride for stride in strides]
    return View(base, dtype, sizes, tuple(strides))


def check(
    program: VectorProgram, sources: list[View], dst: View, device: SmallDevice, *, count: bool
) -> int:
    """Run on random operands; the number of elements compared."""
    rng = np.random.default_rng([LINES[program.name], dst.sizes[-1], dst.dtype])
    for view in [*sources, dst]:
        array = view.array(device)
        array[...] = random_bits(rng, view.dtype, array.shape, specials=0.2)
    imms = random_bits(rng, DType.FP32, (4,), specials=0.2).tolist()
    if any(v.dtype not in (DType.FP32, DType.FP16, DType.BF16) for v in sources):
        imms = rng.integers(0, 1 << 32, 4).tolist()
    packet = vector_packet(program, sources, dst, imms, None if count else device)
    wanted = expected(program, device, sources, dst, imms)
    before = device.memory.copy()
    device.model.clear_dirty()
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault
    np.testing.assert_array_equal(dst.array(device), wanted)
    after = device.memory.copy()
    dst.array(device)[...] = 0
    cleared = device.memory.copy()
    device.memory[:] = before
    dst.array(device)[...] = 0
    np.testing.assert_array_equal(device.memory, cleared)  # nothing outside dst changed
    device.memory[:] = after
    return wanted.size


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_views_and_types(name: str, threads: int) -> None:
    program, device = PROGRAMS[name], SmallDevice(threads)
    rng = np.random.default_rng([LINES[name], threads])
    compared = 0
    for _ in range(6):
        sizes = tuple(int(s) for s in rng.integers(1, 4, rng.integers(1, 6)))
        if rng.random() < 0.3:
            sizes = (int(rng.integers(1, 3)), int(rng.integers(17, 80)))
        types = rng.choice(list(DType), PLAIN_SOURCES + 1)
        sources = [
            random_view(rng, BASES[i], DType(types[i]), sizes, dst=False)
            for i in range(program.sources)
        ]
        shape = sizes if program.reduce is Reduce.NONE else (*sizes[:-1], 1)
        dst = random_view(rng, DST, DType(types[-1]), shape, dst=True)
        compared += check(program, sources, dst, device, count=False)
    assert compared >= 6


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize("name", ["move", "mul", "mul_add", "int_range"])
def test_a_count_is_a_dense_vector(name: str, dtype: DType) -> None:
    program, device = PROGRAMS[name], SmallDevice()
    sources = [View(BASES[i], dtype, (700,), (1,)) for i in range(program.sources)]
    dst = View(DST, dtype, (700,), (1,))
    assert check(program, sources, dst, device, count=True) == 700


@pytest.mark.parametrize("name", ["add", "float_range", "where"])
def test_long_rows(name: str) -> None:
    program, device = PROGRAMS[name], SmallDevice(2)
    sources = [View(BASES[i], DType.FP16, (2, LONG), (LONG, i)) for i in range(program.sources)]
    assert check(program, sources, View(DST, DType.FP32, (2, LONG), (LONG, 1)), device, count=False)


@pytest.mark.parametrize("elements", [1, 15, 16, 17, 511, 512, 513, LONG])
@pytest.mark.parametrize("name", REDUCING)
def test_rows_of_any_length_are_reduced_in_order(name: str, elements: int) -> None:
    program, device = PROGRAMS[name], SmallDevice()
    rng = np.random.default_rng(elements)
    integers = program.reduce in (Reduce.IADD, Reduce.IMAX, Reduce.IMIN)
    dtype = DType.INT8 if integers else DType.FP16
    sources = [View(BASES[i], dtype, (elements,), (1,)) for i in range(program.sources)]
    for view in sources:
        view.array(device)[...] = random_bits(rng, dtype, (elements,))
    dst = View(DST, DType.FP32, (1,), (1,))
    wanted = expected(program, device, sources, dst, [0] * 4)
    packet = vector_packet(program, sources, dst, [0] * 4, device)
    assert device.run(packet) == ErrorCode.NONE
    assert device.load(DST, DType.FP32, 1).tolist() == wanted.tolist()


def test_a_result_may_replace_its_operand() -> None:
    device, program = SmallDevice(2), PROGRAMS["mul"]
    view = View(BASES[0], DType.FP32, (3, 600), (600, 1))
    view.array(device)[...] = random_bits(np.random.default_rng(3), DType.FP32, (3, 600))
    wanted = expected(program, device, [view, view], view, [])
    assert device.run(vector_packet(program, [view, view], view, [0] * 4, device)) == ErrorCode.NONE
    np.testing.assert_array_equal(view.array(device), wanted)


def test_flush_to_zero_of_the_host_does_not_reach_the_device() -> None:
    torch = pytest.importorskip("torch")
    device = SmallDevice()
    view, dst = (View(base, DType.FP32, (1,), (1,)) for base in (BASES[0], DST))
    device.store(BASES[0], np.array([1], np.uint32))
    packet = vector_packet(PROGRAMS["sum"], [view], dst, [0] * 4, device)
    torch.set_flush_denormal(True)
    try:
        assert device.run(packet) == ErrorCode.NONE
    finally:
        torch.set_flush_denormal(False)
    assert device.load(DST, DType.FP32, 1).tolist() == [1]


def test_dirty_pages_are_those_of_the_result() -> None:
    device = SmallDevice()
    view = View(BASES[0], DType.FP32, (2, 2), (2, 1))
    dst = View(0xBFF8, DType.INT64, (2, 2), (0x400, 1))
    assert device.run(vector_packet(PROGRAMS["move"], [view], dst, [0] * 4, device)) == 0
    assert device.model.dirty_pages() == [0xB000, 0xC000, 0xD000, 0xE000]
