# SPDX-License-Identifier: Apache-2.0
"""Results whose size is in the data: the elements are right, and so is how many there are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from lower_torch import TorchBench, numbers, open_bench

from driver.errors import DeviceFault

MASK = torch.tensor([1, 0, 1, 1, 0, 0, 1], dtype=torch.bool)


@pytest.fixture(scope="module")
def npu() -> Iterator[TorchBench]:
    made = open_bench()
    yield made
    made.device.close()


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_masks_over_more_than_one_block_of_the_running_count(npu: TorchBench, share: float) -> None:
    x = numbers(3, 1300)
    mask = torch.rand(3, 1300, generator=torch.Generator().manual_seed(1)) < share
    assert npu.call("nonzero", mask).exact() == 2 * int(mask.sum())
    assert npu.call("masked_select", x, mask).exact() == int(mask.sum())
    assert npu.call("index.Tensor", x, [mask]).exact() == int(mask.sum())
    assert npu.call("index_put", x, [mask], numbers(int(mask.sum()))).exact() == x.numel()


def test_a_result_that_is_too_short_stops_the_device(npu: TorchBench) -> None:
    short = MASK.nonzero()[:-1]
    with pytest.raises(DeviceFault, match="BAD_INDEX"):
        npu.run("aten.nonzero.default", [MASK], {}, short)
    npu.device.recover()


def test_a_result_that_is_too_long_has_elements_that_nothing_wrote(npu: TorchBench) -> None:
    true = numbers(7)[MASK]
    longer = torch.cat((true, true[:1]))
    found, _ = npu.run("aten.masked_select.default", [numbers(7), MASK], {}, longer).pair
    assert torch.equal(found[:-1], true) and found[-1] != true[0]


def test_a_mask_stands_beside_integers_and_whole_dimensions(npu: TorchBench) -> None:
    x, rows = numbers(4, 7, 3), torch.tensor([3, 0, 2, 1])
    assert npu.call("index.Tensor", x, [rows, MASK]).exact() == 4 * 3
    assert npu.call("index.Tensor", x, [None, MASK]).exact() == 4 * 4 * 3
    assert npu.call("index_put", x, [None, MASK], numbers(4, 4, 3)).exact() == x.numel()
    assert npu.call("index_put", x, [rows, MASK], numbers(4, 3), True).exact() == x.numel()
