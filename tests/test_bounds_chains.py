# SPDX-License-Identifier: Apache-2.0
"""Sums of products are judged as the chains that they are: a few missing ones are seen."""

from __future__ import annotations

import pytest
import torch
from bounds_cases import as_specified

from golden.calls import OpCall, answers
from golden.judge import expectations, judge
from golden.tensors import tensor_bits, values_of


def missing(call: OpCall, without: OpCall, at: int = 0) -> float:
    """The part of the elements of result `at` that are admitted as those of another call."""
    expectation = expectations(call, answers(call))[at]
    assert expectation is not None
    assert expectation.admits_torch(values_of(torch_answer(call, at))).all()
    return float(expectation.admits_npu(values_of(torch_answer(without, at))).mean())


def torch_answer(call: OpCall, at: int = 0) -> torch.Tensor:
    found = answers(call)[at]
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("name", ["conv3d", "conv2d", "conv1d", "mv", "dot"])
def test_products_that_are_missing_are_seen(name: str) -> None:
    """16 of 4608 were admitted in one element of six of a conv2d, and in most of an mv."""
    torch.manual_seed(7)
    if name.startswith("conv"):
        kernel, places = {
            "conv3d": ((1, 3, 3), (2, 7, 7)),
            "conv2d": ((3, 3), (7, 7)),
            "conv1d": ((9,), (40,)),
        }[name]
        x, weight = torch.randn(2, 512, *places), torch.randn(8, 512, *kernel)
        rest = [[[1] * len(kernel)], [[0] * len(kernel)], [[1] * len(kernel)]]
        tail = (*(part[0] for part in rest), False, [0] * len(kernel), 1)
        less = weight.clone()
        less.reshape(8, -1)[:, :16] = 0
        calls = [
            OpCall("aten.convolution.default", (x, w, torch.ones(8), *tail)) for w in (weight, less)
        ]
    else:
        x = torch.randn(*([64, 4608] if name == "mv" else [4608]))
        less = x.clone()
        less[..., :16] = 0
        calls = [
            OpCall(f"aten.{name}.default", (y, torch.linspace(-1, 1, 4608))) for y in (x, less)
        ]
    assert missing(calls[0], calls[1]) <= 0.05


@pytest.mark.parametrize("dims", [1, 2])
def test_small_errors_of_a_transposed_convolution_are_seen(dims: int) -> None:
    """2⁻⁸ of 16 of 512 channels was admitted nearly everywhere, of the gradient of an input
    too."""
    torch.manual_seed(7)
    kernel, places = ((9,), (40,)) if dims == 1 else ((3, 3), (7, 7))
    x, weight = torch.randn(2, 512, *places), torch.randn(512, 8, *kernel)
    less = weight.clone()
    less[:16] *= 1 - 2.0**-8
    steps = [[1] * dims, [0] * dims, [1] * dims]
    calls = [
        OpCall("aten.convolution.default", (x, w, torch.ones(8), *steps, True, [0] * dims, 1))
        for w in (weight, less)
    ]
    assert missing(*calls) <= 0.1
    image = torch.randn(2, 8, *(size + kernel[0] - 1 for size in places))
    tail = (None, *steps, False, [0] * dims, 1, [True, False, False])
    calls = [
        OpCall("aten.convolution_backward.default", (x, image, w, *tail)) for w in (weight, less)
    ]
    assert missing(*calls) <= 0.1


def test_products_that_are_missing_of_a_scaled_product_are_seen() -> None:
    torch.manual_seed(3)
    x, weight, bias = torch.randn(8, 4608), torch.randn(4608, 32), torch.randn(32)
    less = x.clone()
    less[:, :16] = 0
    scales = {"alpha": 0.3, "beta": 0.7}
    calls = [OpCall("aten.addmm.default", (bias, a, weight), scales) for a in (x, less)]
    assert missing(calls[0], calls[1]) <= 0.05


def test_what_torchs_addmv_rounds_on_the_way_is_admitted() -> None:
    """The product, to 16 bits, before the addition: right results were refused."""
    torch.manual_seed(3)
    x, matrix, vector = (torch.randn(*size).bfloat16() for size in ((64,), (64, 1), (1,)))
    call = OpCall("aten.addmv.default", (x, matrix, vector))
    (expectation,) = expectations(call, answers(call))
    assert expectation is not None
    assert expectation.admits_torch(values_of(torch_answer(call))).all()


@pytest.mark.parametrize("transposed", [False, True])
def test_products_that_are_missing_in_gradients_of_weights_are_seen(transposed: bool) -> None:
    """γ_n·S admitted 16 of 8192 in every element."""
    torch.manual_seed(9)
    grad, x, weight = torch.randn(8, 4, 32, 32), torch.randn(8, 4, 32, 32), torch.randn(4, 4, 3, 3)
    less = grad.clone()
    less[0, :, 5, 1:17] = 0
    ones = [1, 1]
    steps = (ones, ones, ones, transposed, [0, 0], 1, [False, True, False])
    whole, part = (
        OpCall("aten.convolution_backward.default", (g, x, weight, None, *steps))
        for g in (grad, less)
    )
    assert missing(whole, part, at=1) <= 0.05


def test_a_product_of_int4_weights_is_one_chain() -> None:
    """Two of 4096 products missing are seen nearly everywhere, as in other products."""
    torch.manual_seed(5)
    depth = 4096
    x = torch.randn(4, depth)
    words = torch.randint(-(2**31), 2**31 - 1, (depth // 8, 64), dtype=torch.int32)
    scales = torch.rand(depth // 128, 64) + 0.5
    call = OpCall("npu.int4_mm.default", (x, words, scales, 128))
    (made,) = answers(call)
    assert isinstance(made, torch.Tensor)
    (expectation,) = expectations(call, answers(call))
    assert expectation is not None
    assert judge(call, [as_specified(expectation, tensor_bits(made))], None, 16).ok
    spoiled = answers(OpCall(call.op, (x.index_fill(1, torch.arange(2), 0.0), *call.args[1:])))
    seen = judge(call, [tensor_bits(spoiled[0])], None, 16)
    assert seen.failure is not None
    assert seen.comparison.elements_compared == made.numel()
