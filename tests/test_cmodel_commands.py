# SPDX-License-Identifier: Apache-2.0
"""What commands do to memory: every opcode, direct and through descriptors."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from cmodel_util import STORAGE, SmallDevice, random_bits

from driver.isa import (
    DTYPE_BYTES,
    MATMUL_DTYPES,
    Descriptor,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    flag_word,
)
from golden import softfloat
from golden._cmodel import PAGE_BYTES, CModel

A, B, C, DESC_A, DESC_B, DESC_C = 0x2000, 0x4000, 0x6000, 0x8000, 0x8040, 0x8080
ALL_DTYPES = pytest.mark.parametrize("dtype", list(DType))


@pytest.fixture
def device() -> SmallDevice:
    return SmallDevice()


def strided(
    device: SmallDevice, base: int, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...]
) -> npt.NDArray[np.unsignedinteger]:
    """A numpy view of device memory with the strides of a descriptor."""
    flat = device.memory[base - device.BASE :].view(STORAGE[dtype])
    steps = [stride * DTYPE_BYTES[dtype] for stride in strides]
    return np.lib.stride_tricks.as_strided(flat, sizes, steps)


def test_nop_and_fence_leave_memory_alone(device: SmallDevice) -> None:
    device.store(A, bytes(range(256)))
    before = device.memory.copy()
    for opcode in (Opcode.NOP, Opcode.FENCE):
        assert device.run(Packet(opcode, flag_word(DType.FP32, DType.FP32, "IRQ"))) == 0
    np.testing.assert_array_equal(device.memory, before)
    assert device.model.dirty_pages() == []


def test_sync_writes_its_word_and_no_other_byte(device: SmallDevice) -> None:
    device.memory[:] = 0xAA
    assert device.run(Packet(Opcode.SYNC, 0, dst=A + 4, params=(0xDEAD_BEEF,))) == 0
    expected = [0xAAAA_AAAA, 0xDEAD_BEEF, 0xAAAA_AAAA]
    assert device.load(A, DType.INT32, 3).tolist() == expected
    assert np.count_nonzero(device.memory != 0xAA) == 4


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("trans_a", "trans_b", "accumulate", "described"),
    list(itertools.product((False, True), repeat=4)),
)
@pytest.mark.parametrize(("src", "dst"), MATMUL_DTYPES)
def test_matmul(
    *,
    src: DType,
    dst: DType,
    trans_a: bool,
    trans_b: bool,
    accumulate: bool,
    described: bool,
    threads: int,
) -> None:
    device = SmallDevice(threads)
    rng = np.random.default_rng(12)
    batch, m, k, n = 2, 3, 5, 4
    shapes = [
        (batch, k, m) if trans_a else (batch, m, k),
        (batch, n, k) if trans_b else (batch, k, n),
        (batch, m, n),
    ]
    flags = flag_word(src, dst)
    addresses, views = [], []
    for name, base, desc, dtype, (planes, rows, columns) in zip(
        ("SRC1_DESC", "SRC2_DESC", "DST_DESC"),
        (A, B, C),
        (DESC_A, DESC_B, DESC_C),
        (src, src, dst),
        shapes,
        strict=True,
    ):
        strides = (rows * columns, columns, 1)
        if described:
            strides = (7 * rows * columns, 2, 2 * rows)  # columns outermost, gaps between all
            device.describe(desc, Descriptor(base, dtype, (planes, rows, columns), strides))
            flags |= flag_word(DType.FP32, DType.FP32, name)
        addresses.append(desc if described else base)
        views.append(strided(device, base, dtype, (planes, rows, columns), strides))
        views[-1][...] = random_bits(rng, dtype, (planes, rows, columns))
    for name, wanted in zip(
        ("TRANS_A", "TRANS_B", "ACCUMULATE"), (trans_a, trans_b, accumulate), strict=True
    ):
        flags |= flag_word(DType.FP32, DType.FP32, name) if wanted else 0
    a = views[0].swapaxes(1, 2) if trans_a else views[0]
    b = views[1].swapaxes(1, 2) if trans_b else views[1]
    old = views[2].copy()
    untouched = device.memory.copy()

    assert device.run(Packet(Opcode.MATMUL, flags, *addresses, (m, k, n, batch))) == 0

    assert device.model.dirty_pages() == [C]
    compared = 0
    for p, i, j in np.ndindex(batch, m, n):
        start = int(old[p, i, j]) if accumulate else None
        row, column = a[p, i].tolist(), b[p, :, j].tolist()
        assert views[2][p, i, j] == softfloat.chain(row, column, start, src, dst)
        compared += 1
    assert compared == batch * m * n
    views[2][...] = old
    np.testing.assert_array_equal(device.memory, untouched)


@ALL_DTYPES
def test_copy_moves_bits_untouched(device: SmallDevice, dtype: DType) -> None:
    rng = np.random.default_rng(13)
    bits = rng.integers(0, 256, 300 * DTYPE_BYTES[dtype], np.uint8).view(STORAGE[dtype])
    bits[:2] = [np.iinfo(STORAGE[dtype]).max, 0]  # a NaN with a payload in the float types
    device.store(A, bits)
    assert device.run(Packet(Opcode.COPY, flag_word(dtype, dtype), A, 0, C, (300,))) == 0
    np.testing.assert_array_equal(device.load(C, dtype, 300), bits)
    assert device.model.dirty_pages() == [C]
    assert device.load(C, dtype, 301)[300] == 0


COPY_VIEWS = [
    # sizes, source strides, destination strides
    ((7,), (3,), (2,)),
    ((4, 5), (5, 1), (1, 4)),
    ((2, 3, 4), (0, 4, 1), (12, 4, 1)),
    ((3, 1, 4), (0, 0, 0), (8, 0, 2)),
    ((2, 2, 2, 2, 3), (1, 2, 4, 8, 16), (24, 12, 6, 3, 1)),
    ((1,), (0,), (0,)),
]


@ALL_DTYPES
@pytest.mark.parametrize(("sizes", "src_strides", "dst_strides"), COPY_VIEWS)
@pytest.mark.parametrize("sides", ["both", "src", "dst"])
def test_copy_through_descriptors(
    *,
    device: SmallDevice,
    dtype: DType,
    sizes: tuple[int, ...],
    src_strides: tuple[int, ...],
    dst_strides: tuple[int, ...],
    sides: str,
) -> None:
    rng = np.random.default_rng(14)
    dense = tuple(int(np.prod(sizes[d + 1 :])) for d in range(len(sizes)))
    src_strides = src_strides if sides != "dst" else dense
    dst_strides = dst_strides if sides != "src" else dense
    device.store(A, rng.integers(0, 256, 4096).astype(np.uint8))
    flags, src, dst = flag_word(dtype, dtype), A, C
    if sides != "dst":
        src = device.describe(DESC_A, Descriptor(A, dtype, sizes, src_strides))
        flags |= flag_word(DType.FP32, DType.FP32, "SRC1_DESC")
    if sides != "src":
        dst = device.describe(DESC_C, Descriptor(C, dtype, sizes, dst_strides))
        flags |= flag_word(DType.FP32, DType.FP32, "DST_DESC")
    expected = device.memory.copy()

    assert device.run(Packet(Opcode.COPY, flags, src, 0, dst)) == 0

    source = strided(device, A, dtype, sizes, src_strides)
    target = strided(device, C, dtype, sizes, dst_strides)
    np.testing.assert_array_equal(target, source)
    assert target.size == np.prod(sizes)
    target[...] = 0
    np.testing.assert_array_equal(device.memory, expected)


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype is not DType.INT64])
def test_fill_direct_and_through_a_descriptor(device: SmallDevice, dtype: DType) -> None:
    value = 0xC1D2_E3F4 & ((1 << (8 * DTYPE_BYTES[dtype])) - 1)
    flags = flag_word(DType.FP32, dtype)
    assert device.run(Packet(Opcode.FILL, flags, dst=A, params=(5, value))) == 0
    assert device.load(A, dtype, 6).tolist() == [value] * 5 + [0]

    device.describe(DESC_C, Descriptor(C, dtype, (2, 3), (10, 2)))
    flags |= flag_word(DType.FP32, DType.FP32, "DST_DESC")
    assert device.run(Packet(Opcode.FILL, flags, dst=DESC_C, params=(0, value))) == 0
    row = [value, 0, value, 0, value, 0, 0, 0, 0, 0]
    assert device.load(C, dtype, 20).tolist() == row * 2


def test_a_memory_that_is_larger_than_its_file_needs_no_copy(tmp_path: object) -> None:
    size = 1 << 30
    memory = np.memmap(f"{tmp_path}/dram", dtype=np.uint8, mode="w+", shape=(size,))
    model = CModel(memory, 0, size)
    packet = Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT8), dst=size - 8, params=(8, 0x5A))
    assert model.execute(packet.pack()) == ErrorCode.NONE
    assert memory[-9:].tolist() == [0, *[0x5A] * 8]
    assert model.dirty_pages() == [size - PAGE_BYTES]


def test_dirty_pages_are_those_with_written_elements(device: SmallDevice) -> None:
    # Pages count from the base of memory, 0x1000. The two elements lie three pages apart.
    stride = 3 * PAGE_BYTES // 4
    device.describe(DESC_C, Descriptor(0x2FFC, DType.INT32, (2,), (stride,)))
    flags = flag_word(DType.FP32, DType.INT32, "DST_DESC")
    assert device.run(Packet(Opcode.FILL, flags, dst=DESC_C, params=(0, 1))) == 0
    assert device.model.dirty_pages() == [0x2000, 0x5000]
    direct = Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT8), dst=0x6FFF, params=(2, 1))
    assert device.run(direct) == 0
    assert device.model.dirty_pages() == [0x2000, 0x5000, 0x6000, 0x7000]
    device.model.clear_dirty()
    assert device.model.dirty_pages() == []
    device.describe(DESC_C, Descriptor(C, DType.INT8, (2, 3), (0x4000, 0x1000)))
    nested = Packet(Opcode.FILL, flag_word(DType.FP32, DType.INT8, "DST_DESC"), dst=DESC_C)
    assert device.run(nested) == 0
    assert device.model.dirty_pages() == [0x6000, 0x7000, 0x8000, 0xA000, 0xB000, 0xC000]


@pytest.mark.parametrize(("base", "limit"), [(0, 0), (16, 0), (0, 4097), (1 << 63, (1 << 64) - 1)])
def test_a_memory_that_does_not_fit_its_array_is_refused(base: int, limit: int) -> None:
    with pytest.raises(ValueError, match="mem_limit"):
        CModel(np.zeros(4096, np.uint8), base, limit)


def test_memory_must_be_writable_bytes() -> None:
    frozen = np.zeros(4096, np.uint8)
    frozen.flags.writeable = False
    for memory in (frozen, np.zeros(1024, np.uint32), np.zeros(8192, np.uint8)[::2]):
        with pytest.raises(TypeError):
            CModel(memory, 0, 4096)  # type: ignore[arg-type]


def test_a_packet_has_64_bytes(device: SmallDevice) -> None:
    for size in (0, 63, 65):
        with pytest.raises(ValueError, match="64 bytes"):
            device.model.execute(bytes(size))
