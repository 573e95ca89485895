# SPDX-License-Identifier: Apache-2.0
"""Conversions are judged everywhere; torch is free where C++ does not define them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from golden.calls import OpCall
from golden.judge import expectations, judge
from golden.tensors import tensor_bits

_FAR = 1 << 40
WRONG: list[tuple[torch.Tensor, torch.dtype, torch.Tensor]] = [
    (torch.tensor([3e9]), torch.int64, torch.tensor([2147483647])),
    (torch.tensor([-(2.0**63)]), torch.int64, torch.tensor([0])),
    (torch.tensor([_FAR]), torch.float32, torch.tensor([0.0])),
    (torch.tensor([_FAR + 1]), torch.int32, torch.tensor([2147483647], dtype=torch.int32)),
    (torch.tensor([_FAR + 200]), torch.uint8, torch.tensor([255], dtype=torch.uint8)),
    (torch.tensor([_FAR]), torch.bool, torch.tensor([False])),
]


@pytest.mark.parametrize(("x", "dtype", "wrong"), WRONG)
@pytest.mark.parametrize("op", ["_to_copy.default", "copy_.default"])
def test_a_wrong_conversion_is_found(
    op: str, x: torch.Tensor, dtype: torch.dtype, wrong: torch.Tensor
) -> None:
    if op.startswith("copy"):
        call = OpCall(f"aten.{op}", (torch.zeros(1, dtype=dtype), x))
    else:
        call = OpCall(f"aten.{op}", (x,), {"dtype": dtype})
    verdict = judge(call, [tensor_bits(wrong)], None, 4)
    assert verdict.blame == "lowering"
    assert judge(call, [tensor_bits(x.to(dtype))], None, 4).ok


@pytest.mark.parametrize(
    ("dtype", "open_at"),
    [
        (torch.int64, [False, False, False, True, True, True, True]),
        (torch.int32, [False, True, True, True, True, True, True]),
        (torch.uint8, [True] * 7),
        (torch.bool, [False] * 7),
    ],
    ids=str,
)
def test_torchs_floats_outside_the_integer_type_are_open(
    dtype: torch.dtype, open_at: list[bool]
) -> None:
    inf = float("inf")
    x = torch.tensor([-(2.0**31), 2.0**31, -(2.0**63), 2.0**63, -inf, inf, float("nan")])
    call = OpCall("aten._to_copy.default", (x,), {"dtype": dtype})
    (expectation,) = expectations(call, (x.to(dtype),))
    assert expectation is not None
    assert expectation.torch.unbounded.tolist() == open_at
    assert not expectation.npu.unbounded.any()


def test_the_low_byte_of_an_int32_is_required() -> None:
    x = torch.tensor([-1.0, 300.0, -129.5, 255.0])
    for dtype, right in ((torch.uint8, [255, 44, 127, 255]), (torch.int8, [-1, 44, 127, -1])):
        call = OpCall("aten._to_copy.default", (x,), {"dtype": dtype})
        (expectation,) = expectations(call, (x.to(dtype),))
        assert expectation is not None
        made = np.array(right, np.float64)
        assert expectation.admits_npu(made).all()
        assert not expectation.admits_npu(made + 1).any()
