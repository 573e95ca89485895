# SPDX-License-Identifier: Apache-2.0
"""MATMUL through windows, against the chain on gathered elements."""

from __future__ import annotations

import numpy as np
import pytest
from cmodel_util import STORAGE, SmallDevice, random_bits
from test_cmodel_matmul import expected_product
from test_packets import agreed
from window_products import (
    WINDOWS,
    A,
    B,
    C,
    elements,
    positions,
    random_product,
)

from driver.isa import (
    MATMUL_DTYPES,
    DType,
    ErrorCode,
    Opcode,
    Packet,
    WindowDescriptor,
    flag_word,
)


@pytest.mark.parametrize(("src", "dst"), MATMUL_DTYPES)
def test_products_of_random_windows_agree_with_softfloat(src: DType, dst: DType) -> None:
    compared = 0
    for seed in range(9):
        case = random_product(seed, src, dst)
        device = case.placed(seed)
        a, b, before = (elements(device, window) for window in (case.a, case.b, case.c))
        wanted = device.memory.copy()
        start = before if case.accumulate else None
        if case.start:
            start = elements(device, case.start)
        values = expected_product(a, b, start, src, dst)
        flat = wanted[case.c.base - device.BASE :][:0x4000].view(STORAGE[dst])
        flat[positions(case.c)] = values
        assert device.run(case.packet) == ErrorCode.NONE, device.model.last_fault
        np.testing.assert_array_equal(device.memory, wanted)
        compared += values.size
    assert compared > 300


@pytest.mark.parametrize(("src", "dst"), [(DType.BF16, DType.BF16), (DType.INT8, DType.INT32)])
def test_the_third_opinion_reads_windows(src: DType, dst: DType) -> None:
    compared = 0
    for seed in range(4):
        case = random_product(seed, src, dst)
        compared += agreed(case.placed(seed), case.packet)
    assert compared > 60


def test_a_convolution_is_one_product_of_overlapping_windows() -> None:
    images, channels, side, out, kernel = 2, 3, 9, 4, 3
    places = side - kernel + 1
    device, rng = SmallDevice(), np.random.default_rng(5)
    x = rng.integers(-8, 8, (images, channels, side, side)).astype(np.float32)
    weight = rng.integers(-8, 8, (out, channels, kernel, kernel)).astype(np.float32)
    device.store(A, weight.view(np.uint32))
    device.store(B, x.view(np.uint32))
    plane, area = side * side, places * places
    taps = channels * kernel * kernel
    windows = WindowDescriptor(
        B,
        DType.FP32,
        (1, channels, kernel, kernel, images, places, places),
        (0, plane, side, 1, channels * plane, side, 1),
    )
    result = WindowDescriptor(
        C, DType.FP32, (1, 1, 1, out, 1, images, area), (0, 0, 0, area, 0, out * area, 1)
    )
    device.store(WINDOWS["SRC2_DESC"], windows.pack())
    device.store(WINDOWS["DST_DESC"], result.pack())
    flags = flag_word(DType.FP32, DType.FP32, "SRC2_DESC", "DST_DESC")
    sizes = (out, taps, images * area, 1)
    packet = Packet(Opcode.MATMUL, flags, A, *list(WINDOWS.values())[1:], sizes)
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault
    found = device.load(C, DType.FP32, images * out * area).view(np.float32)
    patches = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (2, 3))
    wanted = np.einsum("ncpqij,ocij->nopq", patches, weight)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize(("src", "dst"), MATMUL_DTYPES)
def test_the_gradient_of_weights_has_windows_with_long_rows(src: DType, dst: DType) -> None:
    """Neighbours of a row of B are adjacent in memory, and in runs; those of a column are not."""
    images, side, out, kernel = 2, 11, 3, 3
    places = side - kernel + 1
    device, rng = SmallDevice(), np.random.default_rng(6)
    for base, count in ((A, images * out * places**2), (B, images * side**2)):
        device.store(base, random_bits(rng, src, (count,), 0.002))
    area, plane = places * places, side * side
    grad = WindowDescriptor(
        A, src, (1, 1, 1, out, 1, images, area), (0, 0, 0, area, 0, out * area, 1)
    )
    windows = WindowDescriptor(
        B,
        src,
        (1, images, places, places, 1, kernel, kernel),
        (0, plane, side, 1, 0, side, 1),
    )
    device.store(WINDOWS["SRC1_DESC"], grad.pack())
    device.store(WINDOWS["SRC2_DESC"], windows.pack())
    flags = flag_word(src, dst, "SRC1_DESC", "SRC2_DESC")
    sizes = (out, images * area, kernel * kernel, 1)
    wanted = expected_product(elements(device, grad), elements(device, windows), None, src, dst)
    packet = Packet(Opcode.MATMUL, flags, WINDOWS["SRC1_DESC"], WINDOWS["SRC2_DESC"], C, sizes)
    assert device.run(packet) == ErrorCode.NONE, device.model.last_fault
    np.testing.assert_array_equal(device.load(C, dst, wanted.size), wanted.reshape(-1))
