# SPDX-License-Identifier: Apache-2.0
"""The bound holds for every chain of fused multiply-adds, and is sharp enough to see errors."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.isa import DType
from driver.runtime.torch_types import NPU_TYPES
from golden import comparison
from golden.bounds.expectation import Subject, gamma
from golden.bounds.matmul import RULES
from golden.bounds.matmul import product_bounds as bounds
from golden.bounds.products import behind_rows
from golden.calls import OpCall, answers
from golden.comparison import Comparison
from golden.formats import Floats, Values, round_to
from golden.products import Product, reference
from golden.tensors import values_of

FLOATS = {DType.FP32: torch.float32, DType.FP16: torch.float16, DType.BF16: torch.bfloat16}
PAIRS = [
    (DType.FP32, DType.FP32),
    (DType.FP16, DType.FP16),
    (DType.FP16, DType.FP32),
    (DType.BF16, DType.BF16),
    (DType.BF16, DType.FP32),
]
INF, NAN = float("inf"), float("nan")
ANY_FP32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def fma32(a: Floats, b: Floats, c: Floats) -> Floats:
    """round32(a·b + c) of fp32 values: float64 product is exact, sum is rounded to odd first.

    Rounding to odd with 53 bits and then to nearest with 24 is one rounding (S. Boldo and
    G. Melquiond, Emulation of FMA and correctly rounded sums, IEEE Trans. Comp. 57, 2008).
    """
    with np.errstate(invalid="ignore", over="ignore"):
        exact = a * b
        total = exact + c
        part = total - exact
        lost = (exact - (total - part)) + (c - part)
        even = total.view(np.int64) % 2 == 0
        towards = np.where(lost > 0, np.inf, -np.inf)
        odd = np.where((lost != 0) & even & np.isfinite(lost), np.nextafter(total, towards), total)
        return odd.astype(np.float32).astype(np.float64)


def compare(problem: Product, npu: Values, torch_values: Values) -> Comparison:
    return comparison.compare(bounds(problem), npu, torch_values)


def exact_product(a: Values, b: Values, c: Values | None, operand: DType, result: DType) -> Product:
    """Of values that the types hold: a [batch, M, K], b [batch, K, N], c [batch, M, N]."""
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    added = None if c is None else torch.from_numpy(c)
    return Product(left, right, added, operand, result, (*a.shape[:2], b.shape[2]))


def chain(problem: Product) -> Floats:
    """What the NPU computes: k ascending, one fma each, one rounding to the result type."""
    a, b, c = problem.values()
    total = np.zeros(problem.shape) if c is None else c.astype(np.float64)
    for k in range(a.shape[2]):
        total = fma32(a[:, :, k, None], b[:, None, k, :], total)
    return round_to(total, problem.result)


def problem_of(
    operand: DType,
    result: DType,
    size: tuple[int, int, int],
    seed: int,
    *,
    scale: float = 1.0,
    spread: float = 0.0,
    with_c: bool = False,
) -> tuple[Product, Values]:
    """A product of random values, and torch's result. `spread`: binades on either side."""
    m, k, n = size
    rng = np.random.default_rng(seed)

    def draw(*shape: int, dtype: DType) -> torch.Tensor:
        values = rng.standard_normal(shape) * scale * 2.0 ** rng.uniform(-spread, spread, shape)
        return torch.from_numpy(values).to(FLOATS[dtype])

    a, b = draw(1, m, k, dtype=operand), draw(1, k, n, dtype=operand)
    if with_c:
        c = draw(1, m, n, dtype=result)
        call = OpCall("aten.baddbmm.default", (c, a, b), result=result)
    else:
        call = OpCall("aten.bmm.default", (a, b), result=result)
    assert call.product is not None
    return call.product, values_of(reference(call.product))


def fp32_product(a: list[float], b: list[float], c: float | None = None) -> Product:
    """One row times one column."""
    return exact_product(
        np.array(a)[None, None],
        np.array(b)[None, :, None],
        None if c is None else np.full((1, 1, 1), c),
        DType.FP32,
        DType.FP32,
    )


def one(value: float) -> Floats:
    return np.full((1, 1, 1), value)


@given(
    pair=st.sampled_from(PAIRS),
    size=st.tuples(st.integers(1, 3), st.integers(1, 70), st.integers(1, 3)),
    scale=st.sampled_from([2.0**e for e in (-75, -70, -64, -62, -40, -12, 0, 7)]),
    spread=st.sampled_from([0.0, 3.0, 30.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=400, deadline=None)
def test_chain_and_torch_are_always_within_their_bounds(
    pair: tuple[DType, DType],
    size: tuple[int, int, int],
    scale: float,
    spread: float,
    seed: int,
) -> None:
    problem, torch_result = problem_of(
        *pair, size, seed, scale=scale, spread=spread, with_c=seed % 2 == 1
    )
    result = compare(problem, chain(problem), torch_result)
    assert result.elements_compared == size[0] * size[2]
    assert result.npu_violations == 0
    assert result.torch_violations == 0
    assert result.worst_ratio <= 1 + 1e-12


@given(
    terms=st.lists(
        st.tuples(ANY_FP32, ANY_FP32),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=300, deadline=None)
def test_bound_holds_in_exact_arithmetic_for_any_operands(
    terms: list[tuple[float, float]],
) -> None:
    """Rational arithmetic stands in for float64: true value, chain and bound with no rounding."""
    problem = fp32_product([a for a, _ in terms], [b for _, b in terms])
    limits = bounds(problem)
    if limits.npu.unbounded.any():
        return
    true = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
    total = 0.0
    for a, b in terms:
        total = nearest32(Fraction(total) + Fraction(a) * Fraction(b))
    assert total == chain(problem).item()
    low, high = limits.npu.low.item(), limits.npu.high.item()
    assert low <= total <= high
    assert low <= nearest32(true) <= high


def nearest32(value: Fraction) -> float:
    """Round a rational to fp32, ties to even, by integers alone."""
    if value == 0:
        return 0.0
    exponent = max(-126, len(bin(abs(value.numerator))) - len(bin(value.denominator)))
    if abs(value) < Fraction(2) ** exponent:
        exponent = max(-126, exponent - 1)
    quantum = Fraction(2) ** (exponent - 23)
    return float(round(value / quantum) * quantum)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("terms", [1, 2, 17, 896, 4864])
def test_one_missing_product_is_flagged(pair: tuple[DType, DType], terms: int) -> None:
    problem, torch_result = problem_of(*pair, (4, terms, 8), seed=terms)
    assert compare(problem, chain(problem), torch_result).ok
    for k in {0, terms // 2, terms - 1}:
        short = problem.a.clone()
        short[:, :, k] = 0
        wrong = chain(replace(problem, a=short))
        result = compare(problem, wrong, torch_result)
        assert result.npu_violations >= result.elements_compared // 2
        assert result.torch_violations == 0 and not result.ok


@pytest.mark.parametrize(("terms", "largest"), [(64, 1e-4), (896, 3e-3), (4864, 3e-2)])
def test_bound_is_as_small_as_documented(terms: int, largest: float) -> None:
    """Random normal fp32 data; the order-independent bound is 5 to 90 times wider."""
    problem, _ = problem_of(DType.FP32, DType.FP32, (8, terms, 8), seed=1)
    limits = bounds(problem)
    assert (limits.npu.high - limits.npu.low).max() / 2 < largest
    assert (limits.torch.high - limits.torch.low).mean() > 4 * (
        limits.npu.high - limits.npu.low
    ).mean()


@pytest.mark.parametrize("pair", PAIRS)
def test_interval_ends_where_it_says(pair: tuple[DType, DType]) -> None:
    problem, torch_result = problem_of(*pair, (3, 33, 3), seed=5)
    limits = bounds(problem).npu
    quantum = round_to(limits.high * (1 + 2.0**-7), pair[1]) - limits.high
    assert compare(problem, limits.high, torch_result).ok
    assert compare(problem, limits.low, torch_result).ok
    beyond = limits.high.copy()
    beyond[0, 1, 2] += abs(quantum[0, 1, 2]) + 2.0**-20
    result = compare(problem, beyond, torch_result)
    assert (result.npu_violations, result.worst_index) == (1, (0, 1, 2))


def test_wrong_reference_is_blamed_on_the_reference() -> None:
    problem, torch_result = problem_of(DType.FP32, DType.FP32, (2, 16, 2), seed=3)
    torch_result[0, 0, 1] += 0.5
    result = compare(problem, chain(problem), torch_result)
    assert (result.npu_violations, result.torch_violations) == (0, 1)
    assert result.worst_index == (0, 0, 1) and not result.ok


@pytest.mark.parametrize("x", [INF, -INF, NAN, 0.0, -1.0, 2.0])
@pytest.mark.parametrize("y", [INF, -INF, NAN, 0.0, -1.0, 2.0])
@pytest.mark.parametrize("c", [None, INF, -INF, NAN, 1.0])
def test_not_finite_operands_decide_in_any_order(x: float, y: float, c: float | None) -> None:
    problem = fp32_product([1.0, x, 3.0], [2.0, y, -1.0], c)
    (expected,) = chain(problem).flatten()
    a, b = (v.float() for v in (problem.a, problem.b))
    total = torch.bmm(a, b) if c is None else torch.baddbmm(torch.full((1, 1, 1), c), a, b)
    assert compare(problem, one(expected), values_of(total)).ok
    wrong = 7.0 if not np.isfinite(expected) else INF
    assert compare(problem, one(wrong), values_of(total)).npu_violations == 1
    if np.isnan(expected):
        assert compare(problem, one(INF), values_of(total)).npu_violations == 1
    elif np.isinf(expected):
        assert compare(problem, one(-expected), values_of(total)).npu_violations == 1
        assert compare(problem, one(NAN), values_of(total)).npu_violations == 1


def test_overflow_that_depends_on_the_order_claims_nothing_and_says_so() -> None:
    """3e38 + 3e38 − 3e38 − 3e38 is infinite from the left and 0 pairwise."""
    problem = fp32_product([3e38, 3e38, -3e38, -3e38], [1.0] * 4)
    assert chain(problem).item() == INF
    for value in (INF, 0.0, NAN):
        result = compare(problem, one(value), one(0.0))
        assert (result.unbounded, result.elements_compared, result.ok) == (1, 0, False)


def test_overflow_in_some_other_order_still_leaves_the_chain_a_bound() -> None:
    """From the left no partial sum passes 1e37; all positive terms first would overflow."""
    problem = fp32_product([1e37, -1e37] * 40, [1.0] * 80)
    assert compare(problem, one(0.0), one(INF)).ok
    assert compare(problem, one(INF), one(INF)).npu_violations == 1


def test_overflow_does_not_excuse_a_missing_nan() -> None:
    problem = fp32_product([3e38, 3e38, NAN], [1.0] * 3)
    assert compare(problem, one(NAN), one(NAN)).ok
    assert compare(problem, one(INF), one(NAN)).npu_violations == 1


@pytest.mark.parametrize(("operand", "violations"), [(DType.BF16, 0), (DType.FP32, 1)])
def test_only_torchs_16_bit_kernels_may_make_nan_of_infinity_times_subnormal(
    operand: DType, violations: int
) -> None:
    problem = exact_product(one(INF), one(2.0**-130), None, operand, operand)
    result = compare(problem, one(INF), one(NAN))
    assert (result.npu_violations, result.torch_violations) == (0, violations)
    assert compare(problem, one(NAN), one(INF)).npu_violations == 1


@pytest.mark.parametrize(
    ("operand", "depth", "behind", "violations"),
    [
        (torch.bfloat16, 3, INF, 0),
        (torch.bfloat16, 3, NAN, 0),
        (torch.bfloat16, 3, 1.0, 1),
        (torch.bfloat16, 4, INF, 1),
        (torch.float32, 3, INF, 1),
    ],
)
def test_only_torchs_16_bit_kernels_may_multiply_what_is_behind_a_row_of_odd_length_by_0(
    operand: torch.dtype, depth: int, behind: float, violations: int
) -> None:
    stored = torch.ones(2, depth + 1, dtype=operand)
    stored[0, depth] = behind
    a, b = stored[:, :depth], torch.ones(depth, 2, dtype=operand)
    kind = NPU_TYPES[operand]
    problem = Product(a, b, None, kind, kind, (2, 2))
    found = np.full((1, 2, 2), float(depth))
    other = found.copy()
    other[0, 0, 0] = NAN
    result = compare(problem, found, other)
    assert (result.npu_violations, result.torch_violations) == (0, violations)
    assert compare(problem, other, found).npu_violations == 1
    second = np.flip(other, 1)  # behind the second row there is a 1, or nothing
    assert compare(problem, found, second).torch_violations == 1


def test_products_by_other_rules_and_dense_rows_know_what_is_behind_a_row() -> None:
    a = torch.ones(2, 3, 5, dtype=torch.bfloat16)
    a[1, 0, 0] = INF
    behind = np.zeros((2, 3), np.bool_)
    behind[0, 2] = True
    assert np.array_equal(behind_rows(a), behind)
    assert not behind_rows(a.mT.contiguous().mT).any()
    operands = (torch.ones(4).bfloat16(), a.reshape(6, 5), torch.ones(5, 4).bfloat16())
    call = OpCall("aten.addmm.default", operands, {"beta": 0, "alpha": 2})
    (expected,) = RULES["addmm"](Subject(call, answers(call)))
    assert expected is not None
    assert np.array_equal(expected.torch.unbounded.all(1), [0, 0, 1, 1, 0, 0])


def test_chain_that_rounds_against_itself_at_every_step_uses_the_whole_bound() -> None:
    """1 + 2^-24 − … stays 1, 4863 times: the error is u·Σ|s_k|, to a part in a thousand."""
    steps, term = 4863, 2.0**-24 * (1 - 2.0**-20)
    problem = fp32_product([1.0] + [term] * steps, [1.0] * (steps + 1))
    stuck = chain(problem)
    assert stuck.item() == 1.0
    result = compare(problem, stuck, round_to(bounds(problem).true, DType.FP32))
    assert result.ok and result.max_error > 0.999 * steps * term
    assert compare(problem, one(1.0 - 2.0**-22), stuck).npu_violations == 1


@pytest.mark.parametrize(("operand", "violations"), [(DType.BF16, 0), (DType.FP32, 1)])
def test_only_torchs_16_bit_kernels_may_drop_a_subnormal_operand(
    operand: DType, violations: int
) -> None:
    problem = exact_product(one(2.0**-130), one(2.0**100), None, operand, operand)
    result = compare(problem, one(2.0**-30), one(0.0))
    assert (result.npu_violations, result.torch_violations) == (0, violations)
    assert compare(problem, one(0.0), one(2.0**-30)).npu_violations == 1


@pytest.mark.parametrize(("operand", "violations"), [(DType.BF16, 0), (DType.FP32, 1)])
def test_only_torchs_16_bit_kernels_may_lose_an_infinity_beside_a_subnormal(
    operand: DType, violations: int
) -> None:
    problem = exact_product(one(INF), one(-(2.0**-130)), None, operand, operand)
    result = compare(problem, one(-INF), one(NAN))
    assert (result.npu_violations, result.torch_violations) == (0, violations)
    assert compare(problem, one(NAN), one(-INF)).npu_violations == 1


@pytest.mark.parametrize(
    ("total", "allowed", "refused"),
    [
        (65504.0, [65504.0], [INF, 65472.0]),
        (65520.0, [65504.0, INF], [65472.0, NAN]),
        (65536.0, [INF], [65504.0, -INF]),
    ],
)
def test_overflow_to_fp16_infinity_is_decided_by_the_rounding(
    total: float, allowed: list[float], refused: list[float]
) -> None:
    problem = exact_product(one(total / 32), one(32.0), None, DType.FP16, DType.FP16)
    for value in allowed:
        assert compare(problem, one(value), one(allowed[0])).npu_violations == 0
    for value in refused:
        assert compare(problem, one(value), one(allowed[0])).npu_violations == 1


def test_result_below_the_smallest_subnormal_may_round_either_way() -> None:
    tiny = 2.0**-149
    problem = fp32_product([2.0**-100], [1.5 * 2.0**-50])
    assert [compare(problem, one(v), one(0.0)).npu_violations for v in (0.0, tiny, 2 * tiny)] == [
        0,
        0,
        1,
    ]


def test_int8_is_exact_modulo_2_to_the_32() -> None:
    a, b = np.full((1, 1, 2), -128), np.full((1, 2, 1), -128)
    c = np.full((1, 1, 1), 2**31 - 1)
    problem = exact_product(a, b, c, DType.INT8, DType.INT32)
    right = np.full((1, 1, 1), -(2**31) + 2 * 128 * 128 - 1)
    assert compare(problem, right, right).ok
    result = compare(problem, right + 1, right)
    assert (result.npu_violations, result.torch_violations, result.max_error) == (1, 0, 1.0)
    assert compare(problem, right, right + 2**32).torch_violations == 1


def test_results_of_another_shape_are_refused() -> None:
    problem, torch_result = problem_of(DType.FP32, DType.FP32, (2, 3, 4), seed=0)
    with pytest.raises(ValueError, match=r"shape \(1, 4, 2\)"):
        compare(problem, torch_result.transpose(0, 2, 1), torch_result)


def test_too_long_a_sum_has_no_bound() -> None:
    assert gamma(1) > 2.0**-24
    assert gamma(2**22) < 1
    assert gamma(2**23) == math.inf
