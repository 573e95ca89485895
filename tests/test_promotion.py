# SPDX-License-Identifier: Apache-2.0
"""Operands of several types enter in the type that torch converts them to, by the judge as well."""

from __future__ import annotations

import pytest
import torch
from judged_call import run

from tb.ops.pair import DevicePair

COUNT = 60
_OTHERS = {
    "int32": torch.arange(2049, 2049 + COUNT, dtype=torch.int32),
    "int64 negative": -torch.arange(2049, 2049 + COUNT),
    "uint8": torch.arange(1, 1 + COUNT, dtype=torch.uint8) + 190,
    "bool": torch.arange(COUNT) % 3 == 0,
    "fp32": torch.arange(1, 1 + COUNT) / 7,
    "one integer": torch.tensor([2051]),
    "integer without dimensions": torch.tensor(2051, dtype=torch.int32),
    "fp32 without dimensions": torch.tensor(1 / 3),
}
_OPS = (
    *("add.Tensor", "sub.Tensor", "rsub.Tensor", "mul.Tensor", "div.Tensor", "atan2.default"),
    *("pow.Tensor_Tensor", "floor_divide.default", "fmod.Tensor", "remainder.Tensor"),
    *("maximum.default", "eq.Tensor", "lt.Tensor", "addcmul.default"),
)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", _OTHERS)
def test_operands_of_two_types(name: str, dtype: torch.dtype, pair: DevicePair) -> None:
    """Beside 16 bits, either way round: 301 less bf16 300 is 0, for 301 is no bf16."""
    x = (torch.arange(COUNT) * 0.37 + 3.7).to(dtype)
    one = x[:1].reshape(())
    other = _OTHERS[name]
    for op in _OPS:
        for operands in ((x, other), (other, x), (one, other), (other, one)):
            given = operands[:1] * 2 + operands[1:] if op == "addcmul.default" else operands
            if op in _NO_TRUTH and "bool" in name:
                continue
            _, verdict = run(pair, f"aten.{op}", *given)
            assert verdict.ok, f"{op}, {[v.dtype for v in given]}: {verdict.failure}"


_NO_TRUTH = ("sub.Tensor", "rsub.Tensor", "addcmul.default", "fmod.Tensor", "remainder.Tensor")
"""Where torch refuses truth values, or does beside some types."""


@pytest.mark.parametrize("name", ["xlogy", "special_xlog1py", "hypot"])
def test_functions_that_torch_defines_by_smaller_ops(name: str) -> None:
    """torch's definitions take integers as fp32; its CPU rounds them first."""
    function = getattr(torch.ops.aten, name)
    x = (torch.arange(COUNT) * 0.37 + 3.7).half().to("npu")
    whole = _OTHERS["int32"].to("npu")
    for found, expected in (
        (function(x, whole), function(x, whole.half())),
        (function(whole, x), function(whole.half(), x)),
    ):
        assert torch.equal(found.cpu(), expected.cpu())
