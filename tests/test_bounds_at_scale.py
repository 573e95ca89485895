# SPDX-License-Identifier: Apache-2.0
"""Bounds at the sizes and values of real programs: a right result fits, a wrong one does not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from judged_call import CONFIG, passes, run

from golden.bounds import windows
from golden.bounds.convolution import chain_of_windows
from golden.bounds.expectation import Subject
from golden.bounds.table import RULES
from golden.calls import OpCall, base_name
from golden.judge import judge
from golden.tensors import tensor_bits
from tb.ops.pair import DevicePair

NAN, INF = float("nan"), float("inf")


def refused(op: str, *args: object, wrong: torch.Tensor, output: int = 0) -> bool:
    """Whether the judge refuses all of a wrong result, the others being torch's."""
    call = OpCall(op, args)
    found = eval_call(call)
    found[output] = wrong
    bits = [None if x is None else tensor_bits(x) for x in found]
    verdict = judge(call, bits, None, CONFIG.array_size)
    return verdict.comparison.npu_violations == wrong.numel()


def eval_call(call: OpCall) -> list[torch.Tensor | None]:
    made = call.overload(*call.args, **call.kwargs)
    return list(made) if isinstance(made, list | tuple) else [made]


def eval_bounds(op: str, args: tuple[object, ...]) -> list[np.ndarray]:
    """How far each output's elements may reach upwards."""
    call = OpCall(op, args)
    found = RULES[base_name(op)](Subject(call, tuple(eval_call(call))))
    return [x.npu.high for x in found if x is not None]


def of_weight(image: torch.Tensor, weight: torch.Tensor) -> tuple[object, ...]:
    """Arguments of the weight's gradient alone."""
    out = torch.nn.functional.conv2d(image, weight)
    g = torch.randn(out.shape)
    return g, image, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False]


def test_a_gradient_of_zeros_is_refused_where_not_all_windows_fit_in_memory(
    monkeypatch: pytest.MonkeyPatch, pair: DevicePair
) -> None:
    torch.manual_seed(1)
    op = "aten.convolution_backward.default"
    args = of_weight(torch.randn(6, 3, 12, 12), torch.randn(4, 3, 3, 3))
    together = passes(pair, op, *args)
    monkeypatch.setattr(windows, "_MOST_AT_ONCE", 2 * 10 * 10 * 27)  # those of two images
    assert passes(pair, op, *args) == together
    large = of_weight(torch.randn(6, 3, 112, 112), torch.randn(4, 3, 3, 3))
    monkeypatch.setattr(windows, "_MOST_AT_ONCE", 110 * 110 * 27)
    assert refused(op, *large, wrong=torch.zeros(4, 3, 3, 3), output=1)


@pytest.mark.parametrize("at_once", [1 << 25, 3 * 54 * 28, 54 * 9, 1])
def test_windows_in_parts_give_the_bounds_of_all(
    monkeypatch: pytest.MonkeyPatch, pair: DevicePair, at_once: int
) -> None:
    torch.manual_seed(8)
    image, weight = torch.randn(5, 6, 13, 9), torch.randn(4, 3, 3, 3)
    args = (image, weight, torch.randn(4), [2, 1], [1, 2], [2, 1], False, [0, 0], 2)
    op = "aten.convolution.default"
    (right,) = eval_call(OpCall(op, args))
    assert right is not None
    whole = chain_of_windows(OpCall(op, args), image, right, args[2])
    g, mask = torch.randn(right.shape), [True, True, False]
    gradients = (g, image, weight, None, *args[3:], mask)
    backward = "aten.convolution_backward.default"
    of_all = eval_bounds(backward, gradients)
    monkeypatch.setattr(windows, "_MOST_AT_ONCE", at_once)
    np.testing.assert_array_equal(chain_of_windows(OpCall(op, args), image, right, args[2]), whole)
    for part, together in zip(eval_bounds(backward, gradients), of_all, strict=True):
        np.testing.assert_allclose(part, together, rtol=1e-3)  # other blocks of a chain
    passes(pair, op, *args)
    passes(pair, backward, *gradients)
    verdict = judge(OpCall(op, args), [tensor_bits(right + 1e-4)], None, 8)
    assert verdict.comparison.npu_violations == right.numel()


@pytest.mark.parametrize("x", [20.0, 400.0, 7310.0])
def test_the_slope_of_gelu_by_tanh_is_1_where_tanh_has_ended(pair: DevicePair, x: float) -> None:
    op = "aten.gelu_backward.default"
    here = torch.linspace(x, 2 * x, 33)
    passes(pair, op, torch.ones(33), here, approximate="tanh")
    passes(pair, op, torch.ones(33), -here, approximate="tanh")
    passes(pair, op, torch.ones(256), torch.linspace(4, 7, 256), approximate="tanh")
    call = OpCall(op, (torch.ones(33), here), {"approximate": "tanh"})
    for wrong in (torch.zeros(33), torch.full((33,), 1.001)):
        assert judge(call, [tensor_bits(wrong)], None, 8).comparison.npu_violations == 33


def test_a_nan_of_a_margin_is_no_number(pair: DevicePair) -> None:
    op = "aten.soft_margin_loss.default"
    x, t = torch.randn(9), torch.ones(9)
    x[3] = NAN
    passes(pair, op, x, t, 0)
    hidden = torch.nn.functional.soft_margin_loss(x, t, reduction="none")
    hidden[3] = 0.6931472
    verdict = judge(OpCall(op, (x, t, 0)), [tensor_bits(hidden)], None, 8)
    assert verdict.wrong and verdict.comparison.npu_violations == 1
    passes(pair, op, torch.tensor([INF, -INF, 2.0]), torch.tensor([1.0, 1.0, -1.0]), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_infinities_of_a_gradient_reach_weight_and_bias(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    torch.manual_seed(2)
    x, weight = torch.randn(2, 4, 8, dtype=dtype), torch.randn(4, dtype=dtype)
    made = torch.ops.aten.native_group_norm(x, weight, None, 2, 4, 8, 2, 1e-5)
    mask = [True, True, True]
    for seed in range(12):
        g = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
        g.view(-1)[seed * 5] = INF if seed % 2 else -INF
        op = "aten.native_group_norm_backward.default"
        passes(pair, op, g, x, *made[1:], weight, 2, 4, 8, 2, mask)
        rows = x.reshape(8, 8)
        _, mean, rstd = torch.ops.aten.native_layer_norm(rows, [8], None, None, 1e-5)
        op = "aten.native_layer_norm_backward.default"
        passes(pair, op, g.reshape(8, 8), rows, [8], mean, rstd, None, None, [True, False, False])


@pytest.mark.parametrize("count", [5, 17, 40])
def test_what_limits_make_of_nan_is_open(pair: DevicePair, count: int) -> None:
    x = torch.linspace(-4, 4, count)
    x[count // 2] = NAN
    g = torch.ones(count)
    passes(pair, "aten.elu_backward.default", g, 1.0, 1.0, 1.0, False, x)
    passes(pair, "aten.hardswish_backward.default", g, x)


def test_a_long_running_sum_of_zeros_is_refused(pair: DevicePair) -> None:
    torch.manual_seed(3)
    x = torch.randn(1 << 16)
    passes(pair, "aten.cumsum.default", x, 0)
    call = OpCall("aten.cumsum.default", (x, 0))
    found = torch.cumsum(x, 0)
    away = found.abs() > 0.5
    verdict = judge(call, [tensor_bits(torch.zeros_like(x))], None, 8)
    assert verdict.comparison.npu_violations >= int(away.sum()) > 60_000


@pytest.mark.parametrize("op", ["adaptive_avg_pool2d", "avg_pool2d"])
def test_the_mean_of_a_large_image_is_not_0(pair: DevicePair, op: str) -> None:
    torch.manual_seed(4)
    x = torch.randn(1, 3, 224, 224) + 0.01
    size = [1, 1] if op.startswith("adaptive") else [224, 224]
    passes(pair, f"aten.{op}.default", x, size)
    passes(pair, f"aten.{op}.default", x[:, :, :100, :130].contiguous(), [size[0] % 7 + 4] * 2)
    assert refused(f"aten.{op}.default", x, size, wrong=torch.zeros(1, 3, 1, 1))


def test_limits_of_zero_and_squares_below_the_normal_range(pair: DevicePair) -> None:
    x = torch.tensor([NAN, 1.0, -1.0, 0.0, INF, -INF])
    args = (torch.ones(6), x, torch.zeros(6), 0)
    passes(pair, "aten.smooth_l1_loss_backward.default", *args, 0.0)
    small = torch.linspace(1e-20, 2e-20, 50)
    for beta in (1e-5, 1e-10):
        passes(pair, "aten.smooth_l1_loss.default", small, torch.zeros(50), 0, beta)


def test_a_result_that_is_not_there_is_refused() -> None:
    call = OpCall("aten.native_layer_norm.default", (torch.randn(4, 8), [8], None, None, 1e-5))
    made = [tensor_bits(x) for x in eval_call(call) if x is not None]
    assert judge(call, made, None, 8).ok
    for bits in ([made[0], None, None], made[:1]):
        verdict = judge(call, bits, None, 8)
        assert verdict.blame == "lowering" and verdict.wrong
        assert verdict.failure is not None and verdict.failure.output == 1


def test_a_linear_of_a_vector_or_of_no_features_is_judged(pair: DevicePair) -> None:
    passes(pair, "aten.linear.default", torch.randn(4, 3), torch.randn(2, 3))
    call = OpCall("aten.linear.default", (torch.randn(4, 3), torch.randn(3)))
    assert judge(call, [tensor_bits(x) for x in eval_call(call) if x is not None], None, 8).ok
    call = OpCall("aten.linear.default", (torch.randn(4, 0), torch.randn(2, 0)))
    assert call.product is not None and call.product.sizes == (4, 2)


def test_a_sum_of_very_many_addends_by_index_is_not_0(pair: DevicePair) -> None:
    torch.manual_seed(5)
    many = 1 << 16
    x, at = torch.randn(many, 2), torch.zeros(many, dtype=torch.int64)
    table = torch.zeros(3, 2)
    sums: dict[str, tuple[object, ...]] = {
        "index_add": (table, 0, at, x),
        "scatter_add": (table, 0, at[:, None].expand(many, 2), x),
        "index_put": (table, [at], x, True),
        "embedding_dense_backward": (x, at, 3, -1, False),
    }
    for name, args in sums.items():
        op = f"aten.{name}.default"
        assert passes(pair, op, *args) == 6
        (right,) = eval_call(OpCall(op, args))
        assert right is not None
        for wrong in (right * 1.05, right - 3.0, torch.zeros(3, 2)):
            call = OpCall(op, args)
            verdict = judge(call, [tensor_bits(wrong)], None, 8)
            assert verdict.comparison.npu_violations >= 2, (name, wrong)


def test_means_and_shares_of_sums_by_index_fit(pair: DevicePair) -> None:
    torch.manual_seed(6)
    x, at = torch.randn(4000, 3), torch.randint(0, 5, (4000,))
    at[:3500] = 2
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        rows, base = x.to(dtype), torch.randn(7, 3).to(dtype)
        passes(pair, "aten.embedding_dense_backward.default", rows, at, 7, 1, True)
        passes(pair, "aten.index_add.default", base, 0, at, rows)
        for kind in ("sum", "mean"):
            args = (base, 0, at[:, None].expand(4000, 3), rows, kind)
            passes(pair, "aten.scatter_reduce.two", *args)
            passes(pair, "aten.scatter_reduce.two", *args, include_self=False)


@pytest.mark.parametrize("name", ["upsample_bilinear2d", "upsample_bicubic2d"])
def test_one_huge_element_of_an_image_hides_no_other(pair: DevicePair, name: str) -> None:
    torch.manual_seed(7)
    x = torch.randn(1, 1, 9, 11)
    x[0, 0, 0, 0] = 1e30
    op, args = f"aten.{name}.default", (x, [20, 17], False)
    assert passes(pair, op, *args) == 340
    (right,) = eval_call(OpCall(op, (x.double(), *args[1:])))
    assert right is not None
    wrong = right.float()
    wrong[..., 8:, 8:] *= 1.001
    verdict = judge(OpCall(op, args), [tensor_bits(wrong)], None, 8)
    assert verdict.comparison.npu_violations == 12 * 9


def test_batch_statistics_of_one_element_less_are_refused(pair: DevicePair) -> None:
    """Dimensions that do not lie together are added up one after the other, not in one chain."""
    torch.manual_seed(2)
    x = torch.randn(32, 4, 28, 28)
    x[0, :, 0, 0] = 1.0
    ones, zeros = torch.ones(4), torch.zeros(4)
    args = (x, ones, zeros, zeros, ones, True, 0.1, 1e-5)
    op = "aten._native_batch_norm_legit_functional.default"
    assert passes(pair, op, *args) == x.numel() + 16
    wide, dims = x.double(), (0, 2, 3)
    root = (wide.var(dims, correction=1) + 1e-5).rsqrt().float()
    assert refused(op, *args, wrong=root, output=2)
    mean = ((wide.sum(dims) - 1.0) / (x.numel() // 4)).float()
    assert refused(op, *args, wrong=mean, output=1)


def test_a_softmax_of_a_vocabulary_without_its_last_element_is_refused(pair: DevicePair) -> None:
    torch.manual_seed(3)
    x = torch.randn(1, 50_257)
    op = "aten._softmax.default"
    assert passes(pair, op, x, 1, False) == x.numel()
    x[0, -1] = x.max() - 2
    without = x.exp() / x[:, :-1].exp().sum()
    assert refused(op, x, 1, False, wrong=without)


def test_a_large_product_hides_no_overflow_to_the_other_side(pair: DevicePair) -> None:
    """−∞ once the sum is, although the next product is by far the largest: it was refused."""
    x = torch.tensor([[[2e38, 3e38]]]).bfloat16()
    weight = torch.tensor([[[-8.0, 3e38]]]).bfloat16()
    _, verdict = run(
        pair, "aten.convolution.default", x, weight, None, [1], [0], [1], False, [0], 1
    )
    assert verdict.undecided and not verdict.comparison.npu_violations


def test_what_torchs_bf16_convolutions_make_of_infinities_and_subnormals_is_open(
    pair: DevicePair,
) -> None:
    torch.manual_seed(3)
    numbers = torch.tensor([INF, NAN, 3e38, 1e-40, 1.0, -2.0, 0.5])
    for transposed in (False, True):
        for _ in range(20):
            x, weight = (numbers[torch.randint(7, size)] for size in ((1, 2, 6, 5), (2, 2, 3, 2)))
            args = (x.bfloat16(), weight.bfloat16(), None, [1, 2], [1, 0], [1, 1], transposed)
            _, verdict = run(pair, "aten.convolution.default", *args, [0, 0], 1)
            assert verdict.undecided or verdict.failure is None
