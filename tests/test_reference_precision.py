# SPDX-License-Identifier: Apache-2.0
"""The true values are float64's, and no coarser: fp32 could not tell a wrong last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from driver.isa import DType
from golden.bounds.matmul import product_bounds
from golden.calls import OpCall, answers, truths, widened
from golden.formats import round_to
from golden.judge import expectations
from golden.tensors import values_of


def test_operands_and_values_are_widened_not_rounded() -> None:
    tiny = torch.tensor([1.0 + 2.0**-40, 1e300], dtype=torch.float64)
    assert values_of(tiny).tolist() == tiny.tolist()
    assert widened(torch.ones(2)).dtype == torch.float64
    assert widened([torch.ones(2, dtype=torch.bfloat16)])[0].dtype == torch.float64
    assert values_of(torch.tensor([2**53 + 1])).tolist() == [2**53 + 1]


@pytest.mark.parametrize(
    ("op", "args", "right"),
    [
        ("aten.add.Tensor", ([1.0], [2.0**-30]), 1.0 + 2.0**-30),
        ("aten.mul.Tensor", ([1.0 + 2.0**-23], [1.0 + 2.0**-23]), (1.0 + 2.0**-23) ** 2),
        ("aten.exp.default", ([1.0],), math.e),
        ("aten.div.Tensor", ([1.0], [3.0]), 1 / 3),
        ("aten.sum.default", ([2.0**24, 1.0, 1.0, 1.0],), 2.0**24 + 3),
        ("aten.mean.default", ([1.0, 2.0, 2.0],), 5 / 3),
        ("aten.tanh.default", ([0.5],), math.tanh(0.5)),
    ],
)
def test_the_truth_has_the_digits_of_float64(
    op: str, args: tuple[list[float], ...], right: float
) -> None:
    call = OpCall(op, tuple(torch.tensor(values) for values in args))
    (true,) = truths(call)
    assert true is not None
    assert abs(values_of(true).item() - right) <= 4 * np.spacing(right)
    (expected,) = expectations(call, answers(call))
    assert expected is not None
    assert abs(expected.true.item() - right) <= 4 * np.spacing(right)


def test_the_true_product_has_the_digits_of_float64() -> None:
    a, b = torch.tensor([[1.0, 2.0**-30]]), torch.tensor([[1.0], [1.0]])
    product = OpCall("aten.mm.default", (a, b)).product
    assert product is not None
    limits = product_bounds(product)
    assert limits.true.item() == 1.0 + 2.0**-30


def test_rounding_happens_once() -> None:
    """1 + 2^-8 + 2^-40 is beyond the tie of bf16; by way of fp32 it would be the tie."""

    value = np.array([1 + 2.0**-8 + 2.0**-40])
    assert round_to(value, DType.BF16).item() == 1 + 2.0**-7
