# SPDX-License-Identifier: Apache-2.0
"""Pooling of integers on the cmodel: values and places as torch has them."""

from __future__ import annotations

import pytest
import torch
from lower_torch import TorchBench
from test_lower_int64_rows import wide

from driver.errors import UnsupportedOp


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8], ids=str)
def test_maxima_of_integers(npu: TorchBench, dtype: torch.dtype) -> None:
    x = wide(1, 2, 6, 7).to(dtype)
    below = torch.full((1, 1, 4, 4), 0 if dtype is torch.uint8 else -100, dtype=dtype)
    for image in (x, below):
        for arguments in (([2, 2],), ([3, 3], [1, 1], [1, 1]), ([2, 2], [2, 2], [0, 0], [2, 2])):
            call = npu.call("max_pool2d_with_indices", image, *arguments)
            assert call.exact() > 0


def test_a_mean_of_integers_is_refused(npu: TorchBench) -> None:
    with pytest.raises(UnsupportedOp, match=r"avg_pool2d.*INT64"):
        npu.call("avg_pool2d", torch.ones(1, 1, 4, 4, dtype=torch.int64), [2, 2])
