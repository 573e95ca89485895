# SPDX-License-Identifier: Apache-2.0
"""Bounds of normalisations, softmax, pooling and softplus where they are hard to keep: torch and
the NPU both stay inside, and the bounds stay finite."""

from __future__ import annotations

import pytest
import torch
from judged_call import passes, run

from driver.errors import UnsupportedOp
from golden.calls import answers
from golden.judge import judge
from tb.ops.case import Case
from tb.ops.pair import DevicePair

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
TYPES = pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: str(d).removeprefix("torch."))


def normal(*sizes: int, mean: float = 0.0, std: float = 1.0, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sizes, generator=generator) * std + mean


@TYPES
def test_a_row_that_is_masked_entirely_has_weights_of_zero(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    scores = normal(4, 9).to(dtype)
    scores[1] = -torch.inf
    scores[2, 3:] = -torch.inf
    assert passes(pair, "aten._safe_softmax.default", scores, -1) == scores.numel()
    result, _ = run(pair, "aten._safe_softmax.default", scores, -1)
    (bits,) = result.cmodel.bits
    assert bits is not None
    assert not bits[1].any()


@TYPES
@pytest.mark.parametrize("beta", [0.5, 2.0, -1.5, 10.0, 1e-3, 1e3, 3.7])
def test_softplus_bounds_count_the_rounding_of_beta_x(
    pair: DevicePair, dtype: torch.dtype, beta: float
) -> None:
    x = normal(400, std=20.0).to(dtype)
    compared = sum(passes(pair, "aten.softplus.default", x, beta, limit) for limit in (20, 2.0))
    assert compared == 2 * x.numel()


@TYPES
def test_a_negative_divisor_of_an_average_bounds_as_a_positive_one(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    x = normal(1, 2, 6, 6).to(dtype)
    shape = ([2, 2], [2, 2], [0, 0], False, True)
    assert passes(pair, "aten.avg_pool2d.default", x, *shape, -2) == 18
    assert passes(pair, "aten.avg_pool2d.default", x, *shape, -3) == 18


@TYPES
@pytest.mark.parametrize("std", [1e-2, 1.0, 3.0, 100.0, 1e4])
def test_normalisations_of_a_large_mean_keep_to_finite_bounds(
    pair: DevicePair, dtype: torch.dtype, std: float
) -> None:
    x = normal(2, 6, 40, mean=1e4, std=std).to(dtype)
    weight, bias = normal(6).to(dtype), normal(6, seed=1).to(dtype)
    group = ("aten.native_group_norm.default", x, weight, bias, 2, 6, 40, 3, 1e-5)
    assert passes(pair, *group) == x.numel() + 12
    rows = ("aten.native_layer_norm.default", x, [40], None, None, 1e-5)
    assert passes(pair, *rows) == x.numel() + 24
    images = normal(2, 6, 5, 8, mean=1e4, std=std).to(dtype)
    images = images.contiguous(memory_format=torch.channels_last)
    group = ("aten.native_group_norm.default", images, weight, bias, 2, 6, 40, 3, 1e-5)
    assert passes(pair, *group) == images.numel() + 12


def test_an_average_of_integers_is_refused_by_name(pair: DevicePair) -> None:
    with pytest.raises(UnsupportedOp, match=r"aten\.avg_pool2d\.default: dtype: got INT64"):
        run(pair, "aten.avg_pool2d.default", torch.arange(36).reshape(1, 1, 6, 6), [2, 2])


def test_the_windows_of_a_large_convolution_fit_into_a_few_megabytes(pair: DevicePair) -> None:
    x, weight = normal(3, 64, 60, 61), normal(4, 64, 3, 3)
    taken: list[int] = []
    alloc = pair.alloc

    def counted(size_bytes: int, region: str = "activations") -> int:
        taken.append(size_bytes)
        return alloc(size_bytes, region)

    pair.alloc = counted  # type: ignore[method-assign]
    args = (x, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    compared = passes(pair, "aten.convolution.default", *args)
    pair.alloc = alloc  # type: ignore[method-assign]
    assert compared == 3 * 4 * 60 * 61
    whole = 4 * 3 * 64 * 9 * 60 * 61
    assert max(taken) <= 1 << 23 < whole


@pytest.mark.parametrize("output", [0, 1, 2, 3, 4])
def test_every_statistic_of_a_batch_in_training_is_judged(pair: DevicePair, output: int) -> None:
    running = (torch.zeros(6), torch.ones(6))
    args = (normal(4, 6, 5, 3), normal(6), normal(6), *running, True, 0.1, 1e-5)
    case = Case(0, "aten.native_batch_norm.default", args, "test")
    bits = [None if x is None else x.copy() for x in pair.run(case, 1).cmodel.bits]
    assert judge(case.call, bits, None, 8).ok
    assert torch.equal(running[0], torch.zeros(6)), "torch may not write to the case's own tensors"
    wrong = bits[output]
    assert wrong is not None
    wrong.flat[3] ^= 1 << 18
    found = judge(case.call, bits, None, 8).failure
    assert found is not None
    assert found.output == output


def test_infinities_and_nan_of_rows_and_weights_are_no_contradiction(pair: DevicePair) -> None:
    x, weight, bias = normal(2, 4, 6), normal(4), normal(4, seed=1)
    x[0, 0, 0], x[1, 3, 2], weight[2] = torch.inf, torch.nan, torch.inf
    group = ("aten.native_group_norm.default", x, weight, bias, 2, 4, 6, 2, 1e-5)
    assert passes(pair, *group) == 48 + 8 - 1 - 12  # a mean, and the channel of that weight
    rows = ("aten.native_layer_norm.default", x, [6], None, None, 1e-5)
    assert passes(pair, *rows) == 48 + 16 - 1
    running = (torch.zeros(4), torch.ones(4))
    batch = ("aten.native_batch_norm.default", x, weight, bias, *running, True, 0.1, 1e-5)
    assert passes(pair, *batch) == 48 + 16 - 4 - 12


def test_an_infinity_beside_a_weight_of_zero_is_left_open_by_resampling(pair: DevicePair) -> None:
    x = normal(1, 2, 6, 7)
    x[0, 0, 1, 1] = torch.inf
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        for size in ([6, 12], [9, 7], [3, 3]):
            for corners in (True, False):
                args = (x, size, corners, None, None)
                assert passes(pair, f"aten.{name}.default", *args) > size[0] * size[1]


@pytest.mark.parametrize("dtype", [torch.bfloat16], ids=str)
def test_16_bit_convolutions_of_torch_may_flush_subnormal_operands(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    x, weight = (normal(1, 2, 8, 8) * 1e-40).to(dtype), normal(4, 2, 3, 3, mean=1e4).to(dtype)
    args = (x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    assert passes(pair, "aten.convolution.default", *args) == 4 * 36


def test_empty_batches_have_nothing_to_compare(pair: DevicePair) -> None:
    x = torch.empty(0, 4, 3, 2)
    calls = (
        ("aten.native_group_norm.default", x, None, None, 0, 4, 6, 2, 1e-5),
        ("aten._softmax.default", x, 0, False),
        ("aten._log_softmax.default", x, 0, False),
        ("aten._safe_softmax.default", x, 0),
        ("aten.upsample_bilinear2d.default", x, [5, 5], False),
        ("aten.adaptive_max_pool2d.default", x, [2, 2]),
    )
    for call in calls:
        result, verdict = run(pair, *call)
        assert (verdict.elements_compared, verdict.failure) == (0, None), call[0]
        assert not result.packets


@TYPES
def test_partial_sums_of_an_average_are_not_rounded_to_16_bits(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    x = normal(2, 4, 6, 8).to(dtype)
    assert passes(pair, "aten.avg_pool2d.default", x, [2, 4]) == 2 * 4 * 3 * 2
    assert passes(pair, "aten._adaptive_avg_pool2d.default", x, [3, 2]) == 2 * 4 * 3 * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("momentum", [-1.2, 0.1, 0.999])
def test_running_statistics_of_terms_that_cancel_count_torchs_rounded_factors(
    pair: DevicePair, dtype: torch.dtype, momentum: float
) -> None:
    x = normal(3, 64, 4, mean=2.0, std=3.0).to(dtype)
    running = (normal(64, std=900.0, seed=1).to(dtype), (normal(64, seed=2).abs() * 900).to(dtype))
    args = (x, None, None, *running, True, momentum, 1e-5)
    assert passes(pair, "aten.native_batch_norm.default", *args)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [0.25, 4.0])
def test_a_product_that_leaves_the_range_in_every_order_is_compared(
    pair: DevicePair, dtype: torch.dtype, size: float
) -> None:
    factors = torch.full((5, 5, 8), size, dtype=dtype)
    assert passes(pair, "aten.prod.default", factors) == 1
    assert passes(pair, "aten.cumprod.default", factors.reshape(200), 0) >= 199


def test_a_product_of_both_ranges_is_left_open(pair: DevicePair) -> None:
    factors = torch.tensor([2.0**100, 2.0**100, 2.0**-100, 2.0**-100])
    assert passes(pair, "aten.prod.dim_int", torch.stack([factors, torch.ones(4)]), 1) == 1


ATTENTION = "aten.scaled_dot_product_attention.default"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_key_that_wins_by_less_than_a_scores_error_may_lose(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    query = torch.full((2, 4, 6, 4), 1e13, dtype=dtype)
    key, value = torch.zeros(2, 2, 5, 4), torch.zeros(2, 2, 5, 4)
    key[:, :, 0] = torch.tensor([1e13, 1.0, -1e13, 0.0])  # the 1 is lost beside 1e13
    key[:, :, 1, 3] = 0.5
    value[:, :, 1:] = 1e13
    gqa = {"is_causal": True, "enable_gqa": True}
    assert passes(pair, ATTENTION, query, key.to(dtype), value.to(dtype), **gqa) == 192
    key[:, :, 0] = torch.tensor([1.0, 0.0, 0.0, 0.0])  # and now its score is exact
    operands = (query, key.to(dtype), value.to(dtype))
    result, verdict = run(pair, ATTENTION, *operands, **gqa)
    assert verdict.failure is None
    (answer,) = result.cmodel.bits
    assert answer is not None
    answer.flat[3] ^= 1 << (8 * answer.itemsize - 8)
    case = Case(0, ATTENTION, operands, "test", kwargs=gqa)
    assert judge(case.call, [answer], None, 8).failure is not None


def test_scores_that_overflow_on_the_way_are_left_open(pair: DevicePair) -> None:
    query, key = normal(1, 2, 3, 4) * 1e20, normal(1, 2, 3, 4, seed=1) * 1e20
    value = normal(1, 2, 3, 4, seed=2) * (normal(1, 2, 3, 4, seed=3) > 0)
    query[:, 0] *= 1e-20
    key[:, 0] *= 1e-20
    assert passes(pair, ATTENTION, query, key, value) == 12


@TYPES
@pytest.mark.parametrize("name", ["mse_loss", "huber_loss", "smooth_l1_loss"])
@pytest.mark.parametrize("odd", [torch.inf, -torch.inf, torch.nan])
def test_a_loss_of_differences_is_judged_with_operands_that_are_not_finite(
    pair: DevicePair, name: str, odd: float, dtype: torch.dtype
) -> None:
    x, target = normal(20).to(dtype), normal(20, seed=1).to(dtype)
    x[3] = odd
    op = f"aten.{name}.default"
    assert passes(pair, op, x, target) == 1
    assert passes(pair, op, x, target, 0) == 20
    target[3] = x[3]  # the difference is NaN
    result, verdict = run(pair, op, x, target)
    assert (verdict.failure, verdict.elements_compared) == (None, 1)
    (answer,) = result.cmodel.bits
    assert answer is not None
    answer[...] = 0
    case = Case(0, op, (x, target), "test")
    found = judge(case.call, [answer], None, 8)
    assert found.failure is not None and found.blame != "none"


def test_torchs_windows_of_16_bits_may_overflow_on_the_way(pair: DevicePair) -> None:
    """The windows meet in the middle: 2 · max − 2 · max."""
    largest = torch.finfo(torch.float16).max
    x = torch.zeros(1, 4, 4, dtype=torch.float16)
    x[0, 0, 3] = x[0, 1, 2] = largest
    x[0, 2, 1] = x[0, 3, 0] = -largest
    args = ([3, 3], [2, 2], [1, 1], [0, 0], [1, 1])
    (torchs,) = answers(Case(0, "aten.col2im.default", (x, *args), "test").call)
    assert torchs is not None
    assert torchs[0, 0, 1, 1].isinf()
    assert passes(pair, "aten.col2im.default", x, *args) == 9
