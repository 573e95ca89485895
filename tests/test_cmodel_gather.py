# SPDX-License-Identifier: Apache-2.0
"""GATHER and SCATTER packets on random views against plain loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from cmodel_util import STORAGE, SmallDevice, random_bits
from test_cmodel_vector import View, flag, random_view

from driver.isa import Descriptor, DType, ErrorCode, Opcode, Packet
from golden import softfloat, softvector

SRC, INDEX, DST = 0x2000, 0x6000, 0xA000
DESCRIPTORS = (0x1000, 0x1040, 0x1080)
ONE = 0x3F80_0000
INDEX_TYPES = (DType.INT32, DType.INT64)
ALL_DESC = ("SRC1_DESC", "SRC2_DESC", "DST_DESC")
Bits = npt.NDArray[np.unsignedinteger]


def packet(
    device: SmallDevice, opcode: Opcode, views: tuple[View, View, View], dim: int, extra: int = 0
) -> Packet:
    """The command with its three descriptors put into memory."""
    for address, view in zip(DESCRIPTORS, views, strict=True):
        device.describe(address, Descriptor(view.base, view.dtype, view.sizes, view.strides))
    flags = extra | sum(flag(name) for name in ALL_DESC)
    flags |= flag("SRC_DTYPE", views[0].dtype) | flag("DST_DTYPE", views[2].dtype)
    flags |= flag("SRC2_DTYPE", views[1].dtype)
    return Packet(opcode, flags, *DESCRIPTORS, (dim,))


def case(
    seed: int, dtype: DType, index_type: DType, *, scatter: bool
) -> tuple[SmallDevice, tuple[View, View, View], int]:
    """Random views with random elements and good indices: source, index, destination."""
    rng = np.random.default_rng([seed, dtype, index_type])
    device = SmallDevice()
    walked = tuple(int(s) for s in rng.integers(1, 5, rng.integers(1, 5)))
    dim = int(rng.integers(len(walked)))
    table = tuple(int(rng.integers(1, 7)) if d == dim else size for d, size in enumerate(walked))
    sizes = (walked, table) if scatter else (table, walked)
    source = random_view(rng, SRC, dtype, sizes[0], dst=False)
    index = random_view(rng, INDEX, index_type, walked, dst=False)
    target = random_view(rng, DST, dtype, sizes[1], dst=True)
    for view in (source, target):
        array = view.array(device)
        array[...] = random_bits(rng, dtype, array.shape, specials=0.2)
    array = index.array(device)
    array[...] = rng.integers(0, table[dim], array.shape)
    return device, (source, index, target), dim


def at(position: tuple[int, ...], dim: int, index: int) -> tuple[int, ...]:
    return (*position[:dim], index, *position[dim + 1 :])


def added(dtype: DType) -> Callable[[int, int], int]:
    """What SCATTER with ACCUMULATE stores."""

    def add(old: int, new: int) -> int:
        a, b = softvector.load(dtype, old), softvector.load(dtype, new)
        total = (a + b) & 0xFFFF_FFFF if dtype is DType.INT32 else softfloat.fma(a, ONE, b)
        return softvector.store(dtype, total)

    return add


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("dtype", DType)
def test_gather_picks_along_one_dimension(dtype: DType, index_type: DType) -> None:
    for seed in range(12):
        device, views, dim = case(seed, dtype, index_type, scatter=False)
        source, index, target = (view.array(device) for view in views)
        wanted = np.zeros(target.shape, STORAGE[dtype])
        for position in np.ndindex(wanted.shape):
            wanted[position] = source[at(position, dim, int(index[position]))]
        before = device.memory.copy()
        command = packet(device, Opcode.GATHER, views, dim)
        assert device.run(command) == ErrorCode.NONE, device.model.last_fault
        np.testing.assert_array_equal(target, wanted)
        target[...] = 0
        after = device.memory[0x1000:].copy()
        device.memory[:] = before
        views[2].array(device)[...] = 0
        np.testing.assert_array_equal(device.memory[0x1000:], after)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("dtype", DType)
def test_scatter_goes_in_row_major_order(
    dtype: DType, index_type: DType, *, accumulate: bool
) -> None:
    for seed in range(12):
        device, views, dim = case(seed, dtype, index_type, scatter=True)
        source, index, target = (view.array(device) for view in views)
        wanted = target.copy()
        add = added(dtype) if accumulate else lambda _, new: new
        extra = flag("ACCUMULATE") if accumulate else 0
        command = packet(device, Opcode.SCATTER, views, dim, extra)
        if accumulate and dtype in (DType.INT8, DType.UINT8, DType.INT64):
            assert device.run(command) == ErrorCode.BAD_DTYPE
            continue
        for position in np.ndindex(source.shape):
            hit = at(position, dim, int(index[position]))
            wanted[hit] = add(int(wanted[hit]), int(source[position]))
        assert device.run(command) == ErrorCode.NONE, device.model.last_fault
        np.testing.assert_array_equal(target, wanted)


@pytest.mark.parametrize("opcode", [Opcode.GATHER, Opcode.SCATTER])
@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("bad", [-1, 4, 1 << 31, 1 << 32, -(1 << 63)])
def test_an_index_outside_the_table_stops_the_command(
    opcode: Opcode, index_type: DType, bad: int
) -> None:
    device = SmallDevice()
    table, walked = (View(base, DType.FP32, (4, 3), (3, 1)) for base in (SRC, DST))
    index = View(INDEX, index_type, (4, 3), (3, 1))
    views = (table, index, walked)
    bits = index.array(device)
    stored = bad & (0xFFFF_FFFF if index_type is DType.INT32 else (1 << 64) - 1)
    bits[2, 1] = stored
    before = device.memory.copy()
    command = packet(device, opcode, views, 0)
    good = stored == 0
    assert device.run(command) == (ErrorCode.NONE if good else ErrorCode.BAD_INDEX)
    if not good:
        np.testing.assert_array_equal(device.memory[0x1000:], before[0x1000:])
        assert device.model.dirty_pages() == []


def test_rows_are_moved_whole_where_they_share_an_index() -> None:
    device = SmallDevice()
    table = View(SRC, DType.BF16, (5, 200), (200, 1))
    index = View(INDEX, DType.INT64, (3, 200), (1, 0))
    target = View(DST, DType.BF16, (3, 200), (200, 1))
    table.array(device)[...] = random_bits(np.random.default_rng(4), DType.BF16, (5, 200))
    device.store(INDEX, np.array([4, 0, 4], np.uint64))
    assert device.run(packet(device, Opcode.GATHER, (table, index, target), 0)) == ErrorCode.NONE
    np.testing.assert_array_equal(target.array(device), table.array(device)[[4, 0, 4]])


def test_only_pages_that_were_hit_are_dirty() -> None:
    device = SmallDevice()
    source = View(SRC, DType.FP32, (1, 4), (4, 1))
    index = View(INDEX, DType.INT32, (1, 4), (1, 0))
    target = View(0xA000, DType.FP32, (5, 4), (0x400, 1))
    device.store(INDEX, np.array([2], np.uint32))
    assert device.run(packet(device, Opcode.SCATTER, (source, index, target), 0)) == ErrorCode.NONE
    assert device.model.dirty_pages() == [0xC000]


def test_only_elements_of_the_table_that_are_hit_meet_bus_errors() -> None:
    device = SmallDevice()
    table = View(SRC, DType.FP32, (4, 16), (16, 1))
    index = View(INDEX, DType.INT32, (2, 16), (1, 0))
    walked = View(DST, DType.FP32, (2, 16), (16, 1))
    device.store(INDEX, np.array([3, 0], np.uint32))
    device.model.poison(SRC + 64, 128, True, True)  # rows 1 and 2
    gather = packet(device, Opcode.GATHER, (table, index, walked), 0)
    assert device.run(gather) == ErrorCode.NONE
    device.store(INDEX, np.array([3, 1], np.uint32))
    assert device.run(gather) == ErrorCode.BUS_READ
    device.model.clear_poison()
    device.model.poison(SRC + 64, 64, False, True)
    assert device.run(gather) == ErrorCode.NONE
    scatter = packet(device, Opcode.SCATTER, (walked, index, table), 0)
    assert device.run(scatter) == ErrorCode.BUS_WRITE
    device.model.clear_poison()
    device.model.poison(SRC + 64, 64, True, False)
    assert device.run(scatter) == ErrorCode.NONE
    adding = packet(device, Opcode.SCATTER, (walked, index, table), 0, flag("ACCUMULATE"))
    assert device.run(adding) == ErrorCode.BUS_READ
