# SPDX-License-Identifier: Apache-2.0
"""Signs of zeros where an op defines them: the NPU has torch's, and the judge requires them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from judged_call import CONFIG, passes

from golden.calls import OpCall
from golden.judge import judge
from golden.tensors import tensor_bits
from tb.ops.pair import DevicePair

TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
OF_ONE = """
    neg abs sign ceil floor round trunc frac sqrt sin tan tanh sinh asin atan asinh atanh expm1
    log1p erf silu gelu
"""
OF_TWO = ("mul", "div", "add", "sub", "atan2")
NUMBERS = torch.tensor([0.0, -0.0, 1.0, -1.0, -0.0, 0.0])


def check(pair: DevicePair, op: str, *args: Any) -> None:
    """The NPU's result passes; with the other signs of its zeros, each of them is refused."""
    assert passes(pair, op, *args)
    call = OpCall(op, args)
    right = call.overload(*args)
    wrong = torch.where(right == 0, -right, right)
    found = judge(call, [tensor_bits(wrong)], None, CONFIG.array_size).comparison.npu_violations
    assert found == int((right == 0).sum()) > 0


@TYPES
@pytest.mark.parametrize("name", OF_ONE.split())
def test_functions_of_zeros(pair: DevicePair, name: str, dtype: torch.dtype) -> None:
    check(pair, f"aten.{name}.default", NUMBERS.to(dtype))


@TYPES
@pytest.mark.parametrize("name", OF_TWO)
def test_zeros_of_two_operands(pair: DevicePair, name: str, dtype: torch.dtype) -> None:
    left, right = (x.flatten().to(dtype) for x in torch.meshgrid(NUMBERS, NUMBERS, indexing="ij"))
    overload = "default" if name == "atan2" else "Tensor"
    check(pair, f"aten.{name}.{overload}", left, right)


@pytest.mark.parametrize("number", [-0.0, 0.0, 2.0, -2.0])
def test_zeros_and_a_number(pair: DevicePair, number: float) -> None:
    check(pair, "aten.mul.Scalar", NUMBERS, number)
    if number:
        check(pair, "aten.div.Scalar", NUMBERS, number)


@TYPES
def test_the_root_of_a_zero_as_a_power_has_either_sign(
    pair: DevicePair, dtype: torch.dtype
) -> None:
    assert passes(pair, "aten.pow.Tensor_Scalar", NUMBERS.abs().copysign(NUMBERS).to(dtype), 0.5)


@pytest.mark.parametrize("descending", [False, True])
def test_zeros_keep_their_order_in_a_sort(pair: DevicePair, descending: bool) -> None:
    x = NUMBERS.repeat(9)
    args = (x, 0, descending)
    assert passes(pair, "aten.sort.default", *args) == 2 * x.numel()
    call = OpCall("aten.sort.default", args)
    values, places = torch.sort(x, dim=0, descending=descending, stable=True)
    swapped = torch.where(values == 0, -values, values)
    bits = [tensor_bits(swapped), tensor_bits(places)]
    found = judge(call, bits, None, CONFIG.array_size).comparison.npu_violations
    assert found == int((values == 0).sum())
