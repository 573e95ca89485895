# SPDX-License-Identifier: Apache-2.0
"""What the host's tensors give to the device, and that they stay as they are."""

from __future__ import annotations

import pytest
import torch

from driver.capture import capture


def test_a_truth_value_is_zero_or_one_whatever_byte_stands_for_it() -> None:
    """As on the CPU, which looks at each: the sum was 767."""
    mask = torch.tensor([0, 255, 255, 2], dtype=torch.uint8).view(torch.bool)
    there = mask.to("npu")
    assert there.sum().item() == 3
    assert torch.equal(there.float().cpu(), torch.tensor([0.0, 1.0, 1.0, 1.0]))
    assert torch.equal((torch.full((2,), 5, device="npu") * mask[1]).cpu(), torch.tensor([5, 5]))


def test_memory_that_was_copied_to_the_device_can_be_resized() -> None:
    given = torch.ones(3)
    assert given.to("npu").sum().item() == 3
    given.resize_(100)
    number = torch.tensor(2.0)
    assert (torch.ones(2, device="npu") * number).sum().item() == 4
    number.resize_(100)
    freed = torch.ones(100)
    freed.to("npu")
    freed.untyped_storage().resize_(0)


def test_memory_that_was_captured_can_be_resized() -> None:
    given = torch.ones(2, 3)
    capture(torch.nn.Linear(3, 2), (given,), name="m", seed=1)
    given.resize_(50)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
def test_fresh_memory_is_filled_where_torch_is_deterministic(dtype: torch.dtype) -> None:
    """So that a program that reads it does not differ from run to run by what was there."""
    torch.use_deterministic_algorithms(True)
    try:
        for device in ("cpu", "npu"):
            fresh = torch.empty(5, dtype=dtype, device=device)
            grown = torch.full((2,), 1, dtype=dtype, device=device).resize_(4)
            for made in (fresh.cpu(), grown.cpu()[2:]):
                largest = None if dtype.is_floating_point else torch.iinfo(dtype).max
                assert made.isnan().all() if largest is None else (made == largest).all()
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.empty(2, dtype=torch.int16, device="npu").shape == (2,)


def test_what_does_not_fit_a_tensor_without_elements_is_an_error() -> None:
    for target, source in (
        (torch.empty(0, device="npu"), torch.ones(3)),
        (torch.empty(0, 3, device="npu"), torch.ones(2, 1, device="npu")),
        (torch.empty(0), torch.ones(3, device="npu")),
    ):
        with pytest.raises(RuntimeError, match="must match"):
            target.copy_(source)
