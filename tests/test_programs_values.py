# SPDX-License-Identifier: Apache-2.0
"""Programs with exact answers: special values of functions, and the way to int8 and back."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import torch

from driver.capture import npu_ops
from driver.isa.programs import PROGRAMS
from golden.accuracy import Words, run

NAN, INF = float("nan"), float("inf")
EDGES = (
    *(0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, -1.5, 1e-45),
    *(-1e-45, 3.4e38, -3.4e38, 2.0**24, 2.0**24 + 2, -(2.0**23) - 1, 2.0**31, 1e30, -1e30),
)


def words(values: npt.ArrayLike) -> Words:
    return np.atleast_1d(np.asarray(values, np.float32)).view(np.uint32)


def of(name: str, *operands: npt.ArrayLike) -> npt.NDArray[np.float32]:
    return run(PROGRAMS[name], *map(words, operands)).view(np.float32)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("relu", (-1.0, -0.0, 0.0, 1e-45, INF, -INF, NAN), (0.0, 0.0, 0.0, 1e-45, INF, 0.0, NAN)),
        ("exp", (-INF, INF, -104.0, 88.8, 0.0, NAN), (0.0, INF, 0.0, INF, 1.0, NAN)),
        ("log", (0.0, -0.0, -1.0, 1.0, INF, NAN), (-INF, -INF, NAN, 0.0, INF, NAN)),
        ("log1p", (-0.0, -1.0, -2.0, INF, 1e-45), (-0.0, -INF, NAN, INF, 1e-45)),
        ("expm1", (-0.0, -INF, INF, -1e-45), (-0.0, -1.0, INF, -1e-45)),
        ("sin", (-0.0, 0.0, INF, -INF, NAN), (-0.0, 0.0, NAN, NAN, NAN)),
        ("cos", (-0.0, INF, -INF, NAN), (1.0, NAN, NAN, NAN)),
        ("tanh", (-0.0, 0.0, -INF, INF, 1e-45), (-0.0, 0.0, -1.0, 1.0, 1e-45)),
        ("erf", (-0.0, 0.0, -INF, INF), (-0.0, 0.0, -1.0, 1.0)),
        ("sigmoid", (-0.0, -INF, INF, NAN), (0.5, 0.0, 1.0, NAN)),
        ("silu", (-0.0, 0.0, INF, -INF, -1e30, 3e38), (-0.0, 0.0, INF, NAN, -0.0, 3e38)),
        ("gelu_erf", (-0.0, 0.0, INF, -INF, -1e30, 3e38), (-0.0, 0.0, INF, NAN, -0.0, 3e38)),
        ("gelu_tanh", (-0.0, 0.0, INF, -INF, -1e30, 3e38), (-0.0, 0.0, INF, NAN, -0.0, 3e38)),
        ("rsqrt", (0.0, -0.0, INF, -1.0, 4.0), (INF, -INF, 0.0, NAN, 0.5)),
    ],
)
def test_special_values_have_these_bits(
    name: str, given: tuple[float, ...], wanted: tuple[float, ...]
) -> None:
    got = of(name, given).view(np.uint32)
    assert [hex(word) for word in got] == [hex(word) for word in words(wanted)]


def test_a_nan_with_sign_and_payload_comes_out_canonical() -> None:
    functions = ("exp", "log", "sin", "cos", "tanh", "sigmoid", "erf", "silu", "gelu_erf", "log1p")
    given = np.array([0xFFC0_0001, 0x7F80_0001, 0xFF80_0001], np.uint32)
    for name in functions:
        assert set(run(PROGRAMS[name], given).tolist()) == {0x7FC0_0000}, name


def test_powers_of_edges_are_what_c99_says() -> None:
    base, exponent = np.array(list(itertools.product(EDGES, EDGES)), np.float32).T
    got, wanted = of("pow", base, exponent), torch.pow(*map(torch.tensor, (base, exponent))).numpy()
    assert got.size == len(EDGES) ** 2
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(wanted)[number])
    np.testing.assert_allclose(got[number], wanted[number], rtol=2.0**-22)


CASES = np.array(
    [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.4, 127.5, -128.5, -128.6, 1e9, -1e9, 3e38, -3e38],
    np.float32,
)


@pytest.mark.parametrize(("scale", "zero_point"), [(1.0, 0), (0.1, 3), (3e-5, -128), (7.0, 127)])
def test_numbers_are_quantised_as_the_custom_op_says(scale: float, zero_point: int) -> None:
    spread = np.random.default_rng(5).normal(size=4000).astype(np.float32) * 100 * scale
    x = np.concatenate([CASES[:-2] * np.float32(scale), CASES, spread]).astype(np.float32)
    zeros = np.full(x.size, zero_point, np.int32).view(np.uint32)
    got = run(PROGRAMS["quantize"], x.view(np.uint32), words(np.full(x.size, scale)), zeros)
    args = torch.tensor(x), torch.tensor(scale), torch.tensor(zero_point)
    wanted = npu_ops.quantize(*args).numpy()
    inside = np.isfinite(x)
    assert np.count_nonzero(inside) > 4000
    np.testing.assert_array_equal(got.view(np.int32)[inside], wanted[inside])
    back = run(PROGRAMS["dequantize"], got, words(np.full(x.size, scale)), zeros)
    again = npu_ops.dequantize(torch.tensor(got.view(np.int32)), *args[1:]).numpy()
    np.testing.assert_array_equal(back.view(np.float32), again)


def test_sums_are_requantised_as_the_custom_op_says() -> None:
    rng = np.random.default_rng(6)
    sums = rng.integers(-(2**31), 2**31, 5000).astype(np.int32)
    sums[:2500] >>= rng.integers(0, 31, 2500)
    scale = np.exp2(rng.uniform(-31, -1, sums.size)).astype(np.float32)
    zeros = rng.integers(-128, 128, sums.size).astype(np.int32)
    got = run(PROGRAMS["requantize"], *(array.view(np.uint32) for array in (sums, scale, zeros)))
    wanted = npu_ops.requantize(*map(torch.tensor, (sums, scale, zeros)), 0).numpy()
    np.testing.assert_array_equal(got.view(np.int32), wanted)
    assert {-128, 127} < set(wanted.tolist())


def test_a_zero_point_beyond_int8_does_not_wrap() -> None:
    zeros = np.array([2**29, -(2**29)], np.int32).view(np.uint32)
    got = run(PROGRAMS["quantize"], words([-3e38, 3e38]), words([1.0, 1.0]), zeros)
    assert got.view(np.int32).tolist() == [-128, 127]
