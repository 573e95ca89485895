# SPDX-License-Identifier: Apache-2.0
"""Results in another type than the one in which an op computes: `out=` and comparisons in place."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("name", ["lt_", "le_", "gt_", "ge_", "eq_", "ne_"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_comparison_in_place_stores_zeros_and_ones(name: str, dtype: torch.dtype) -> None:
    x, y = torch.arange(4).to(dtype), torch.full((4,), 2).to(dtype)
    found = [getattr(a.clone(), name)(a.new_tensor(2)) for a in (x.to("npu"), x.to("npu"))]
    expected = getattr(x.clone(), name)(y)
    for one in found:  # the second call may run what the first one left
        assert torch.equal(one.cpu(), expected)


def test_integers_are_added_as_integers_before_they_become_fp32() -> None:
    x = torch.tensor([(1 << 24) + 1, 3], dtype=torch.int32)
    found = torch.add(x.to("npu"), -(1 << 24), out=torch.empty(2, device="npu"))
    assert found.cpu().tolist() == [1.0, float(3 - (1 << 24))]
    truths = torch.lt(x.to("npu"), 4, out=torch.empty(2, dtype=torch.int64, device="npu"))
    assert truths.cpu().tolist() == [0, 1]
