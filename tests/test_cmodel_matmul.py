# SPDX-License-Identifier: Apache-2.0
"""golden._cmodel.matmul against the chain of golden.softfloat, bit for bit."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from cmodel_util import STORAGE, random_bits

from driver.isa import MATMUL_DTYPES, DType
from golden import _cmodel, softfloat

Array = npt.NDArray[np.unsignedinteger]

KERNELS = _cmodel.kernel_names()
PAIRS = pytest.mark.parametrize(("src", "dst"), MATMUL_DTYPES)

SHAPES = [
    # batch, m, k, n
    (1, 1, 1, 1),
    (1, 1, 7, 1),
    (2, 3, 5, 4),
    (1, 7, 3, 17),
    (1, 13, 4, 65),
    (1, 25, 2, 33),
    (3, 2, 9, 16),
]

LAYOUTS = ("dense", "transposed", "strided")


def laid_out(dense: Array, layout: str) -> Array:
    """The same matrices with other strides."""
    if layout == "transposed":
        return np.ascontiguousarray(dense.swapaxes(1, 2)).swapaxes(1, 2)
    if layout == "strided":
        batch, rows, columns = dense.shape
        spaced = np.zeros((batch, rows * 2, columns * 3), dense.dtype)[:, ::2, ::3]
        spaced[...] = dense
        return spaced
    return dense


def expected_element(
    a: Array, b: Array, c: Array | None, index: tuple[int, int, int], *types: DType
) -> int:
    """One element of the product by softfloat."""
    batch, i, j = index
    row, column = a[batch, i].tolist(), b[batch, :, j].tolist()
    start = None if c is None else int(c[index])
    src, dst = types
    return softfloat.chain(row, column, start, src, dst)


def expected_product(a: Array, b: Array, c: Array | None, src: DType, dst: DType) -> Array:
    """The whole product by softfloat."""
    out = np.zeros((a.shape[0], a.shape[1], b.shape[2]), STORAGE[dst])
    for index in np.ndindex(*out.shape):
        out[index] = expected_element(a, b, c, index, src, dst)
    return out


def product(a: Array, b: Array, c: Array | None, *types: DType, **options: object) -> Array:
    """The whole product by the cmodel; the arrays keep their strides, C is dense."""
    src, dst = types
    out = np.zeros((a.shape[0], a.shape[1], b.shape[2]), STORAGE[dst])
    if c is not None:
        out[...] = c
    _cmodel.matmul(a, b, out, src, dst, accumulate=c is not None, **options)  # type: ignore[arg-type]
    return out


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("specials", [0.0, 0.1])
@PAIRS
def test_every_shape_agrees_with_softfloat(
    src: DType, dst: DType, specials: float, kernels: str
) -> None:
    rng = np.random.default_rng(7)
    compared = 0
    for (batch, m, k, n), accumulate in itertools.product(SHAPES, (False, True)):
        a = random_bits(rng, src, (batch, m, k), specials)
        b = random_bits(rng, src, (batch, k, n), specials)
        c = random_bits(rng, dst, (batch, m, n), specials) if accumulate else None
        got = product(a, b, c, src, dst, kernels=kernels)
        np.testing.assert_array_equal(got, expected_product(a, b, c, src, dst))
        compared += got.size
    assert compared == 2 * sum(batch * m * n for batch, m, _, n in SHAPES)


@pytest.mark.parametrize("kernels", KERNELS)
@PAIRS
def test_strides_choose_elements_and_change_nothing_else(
    src: DType, dst: DType, kernels: str
) -> None:
    rng = np.random.default_rng(8)
    batch, m, k, n = 2, 35, 37, 67
    a, b = random_bits(rng, src, (batch, m, k)), random_bits(rng, src, (batch, k, n))
    c = random_bits(rng, dst, (batch, m, n))
    expected = product(a, b, c, src, dst, kernels=kernels)
    for index in [(0, 0, 0), (1, 34, 66), (0, 17, 63), (1, 3, 64)]:
        assert expected[index] == expected_element(a, b, c, index, src, dst)
    compared = 0
    for in_a, in_b, in_c in itertools.product(LAYOUTS, repeat=3):
        out = laid_out(c.copy(), in_c)
        _cmodel.matmul(
            laid_out(a, in_a), laid_out(b, in_b), out, src, dst, accumulate=True, kernels=kernels
        )
        np.testing.assert_array_equal(out, expected)
        compared += out.size
    assert compared == 27 * batch * m * n


@PAIRS
def test_broadcast_operands_repeat_their_elements(src: DType, dst: DType) -> None:
    rng = np.random.default_rng(9)
    batch, m, k, n = 3, 5, 6, 20
    compared = 0
    for axis_a, axis_b in itertools.product((0, 1, 2), repeat=2):
        a_shape, b_shape = [batch, m, k], [batch, k, n]
        a_shape[axis_a] = b_shape[axis_b] = 1
        a = np.broadcast_to(random_bits(rng, src, tuple(a_shape)), (batch, m, k))
        b = np.broadcast_to(random_bits(rng, src, tuple(b_shape)), (batch, k, n))
        got = product(a, b, None, src, dst)
        np.testing.assert_array_equal(got, expected_product(a, b, None, src, dst))
        compared += got.size
    assert compared == 9 * batch * m * n


@cache
def sampled_product(
    src: DType, dst: DType, m: int, k: int, n: int
) -> tuple[Array, Array, Array, dict[tuple[int, int, int], int]]:
    """A, B, C and some elements of the product by softfloat; the same for all kernels."""
    rng = np.random.default_rng(10)
    a, b = random_bits(rng, src, (1, m, k)), random_bits(rng, src, (1, k, n))
    c = random_bits(rng, dst, (1, m, n))
    corners = itertools.product((0,), (0, m // 2, m - 1), (0, n // 2, n - 1))
    sampled = {*corners, *((0, int(rng.integers(m)), int(rng.integers(n))) for _ in range(10))}
    return a, b, c, {index: expected_element(a, b, c, index, src, dst) for index in sampled}


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(5, 1023, 40), (97, 1024, 33), (98, 1025, 65), (13, 2049, 129), (2, 4864, 70), (200, 64, 3)],
)
@pytest.mark.parametrize(
    ("src", "dst"),
    [(DType.FP32, DType.FP32), (DType.BF16, DType.BF16), (DType.INT8, DType.INT32)],
)
def test_blocking_does_not_show(
    *, src: DType, dst: DType, m: int, k: int, n: int, kernels: str
) -> None:
    a, b, c, expected = sampled_product(src, dst, m, k, n)
    got = product(a, b, c, src, dst, kernels=kernels, threads=2)
    np.testing.assert_array_equal(got, product(a, b, c, src, dst, kernels=KERNELS[-1]))
    assert {index: got[index] for index in expected} == expected
    assert len(expected) > 10


@PAIRS
def test_bits_do_not_depend_on_the_number_of_threads(src: DType, dst: DType) -> None:
    rng = np.random.default_rng(11)
    compared = 0
    for batch, m, k, n in [(1, 150, 300, 200), (1, 400, 500, 30), (12, 64, 80, 70)]:
        a = random_bits(rng, src, (batch, m, k), 0.001)
        b = random_bits(rng, src, (batch, k, n), 0.001)
        single = product(a, b, None, src, dst, threads=1)
        for threads in (2, 5, 0):
            np.testing.assert_array_equal(product(a, b, None, src, dst, threads=threads), single)
            compared += single.size
    assert compared == 3 * (150 * 200 + 400 * 30 + 12 * 64 * 70)


def test_a_nan_of_c_comes_out_canonical_even_with_k_of_one() -> None:
    payload, one = 0xFFC1_2345, 0x3F80_0000
    words = [np.array([[[bits]]], dtype=np.uint32) for bits in (one, one, payload)]
    got = product(*words, DType.FP32, DType.FP32)
    assert got.tolist() == [[[0x7FC0_0000]]]


def test_a_short_tail_of_k_adds_no_zero_terms() -> None:
    minus_zero, one = 0x8000_0000, 0x3F80_0000
    for k in range(1, 20):
        a = np.full((1, 1, k), one, dtype=np.uint32)
        b = np.full((1, k, 3), minus_zero, dtype=np.uint32)
        c = np.full((1, 1, 3), minus_zero, dtype=np.uint32)
        assert product(a, b, c, DType.FP32, DType.FP32).tolist() == [[[minus_zero] * 3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": np.zeros((1, 4, 2), np.uint32)}, "need a"),
        ({"a": np.zeros((1, 2, 0), np.uint32), "b": np.zeros((1, 0, 2), np.uint32)}, "none empty"),
        ({"a": np.zeros((1, 2, 3), np.uint16)}, "item size"),
        ({"src_dtype": 9}, "item size"),
        ({"src_dtype": DType.INT32}, "pair of data types"),
        ({"kernels": "abacus"}, "abacus"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "a": np.zeros((1, 2, 3), np.uint32),
        "b": np.zeros((1, 3, 2), np.uint32),
        "c": np.zeros((1, 2, 2), np.uint32),
        "src_dtype": DType.FP32,
        "dst_dtype": DType.FP32,
    }
    with pytest.raises(ValueError, match=message):
        _cmodel.matmul(**{**arguments, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(100, 300, 20), (20, 300, 100), (24, 17, 64), (49, 1100, 65)])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16])
def test_operands_widened_on_the_way_give_the_bits_of_widened_operands(
    dtype: DType, shape: tuple[int, int, int], *, swapped: bool
) -> None:
    m, k, n = shape
    rng = np.random.default_rng(shape)
    a = random_bits(rng, dtype, (1, m, k))
    b = random_bits(rng, dtype, (1, n, k)).swapaxes(1, 2) if swapped else None
    b = random_bits(rng, dtype, (1, k, n)) if b is None else b
    wide = []
    for operand in (a, b):
        words = np.empty(operand.size, np.uint32)
        widen = _cmodel.widen_fp16 if dtype is DType.FP16 else _cmodel.widen_bf16
        widen(np.ascontiguousarray(operand).astype(np.uint32).ravel(), words)
        wide.append(words.reshape(operand.shape))
    results = [np.zeros((1, m, n), np.uint32) for _ in range(2)]
    for threads in (1, 3):
        _cmodel.matmul(a, b, results[0], dtype, DType.FP32, threads=threads)
        _cmodel.matmul(wide[0], wide[1], results[1], DType.FP32, DType.FP32, threads=threads)
        np.testing.assert_array_equal(results[0], results[1])
    assert np.count_nonzero(results[0]) > m * n // 2
