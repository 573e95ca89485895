# SPDX-License-Identifier: Apache-2.0
"""Calls whose values decide: memory that is gone, bytes that are no truth values, arguments that
torch refuses, products that alpha leaves out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from driver.errors import InputError

GONE = r"the memory of this tensor of \[\d+\] is gone"


@pytest.mark.parametrize("kept_bytes", [0, 64])
def test_a_view_that_ends_behind_its_storage_is_refused(kept_bytes: int) -> None:
    whole = torch.zeros(1000, device="npu")
    view = whole[500:600]
    view.fill_(1.0)  # known to the fast path
    whole.untyped_storage().resize_(kept_bytes)
    others = [torch.zeros(200, device="npu") for _ in range(20)]
    calls: tuple[Callable[[], object], ...] = (
        lambda: view.fill_(9.0),
        lambda: view + 1,
        lambda: view.copy_(torch.ones(100)),
        view.cpu,
    )
    for call in calls:
        with pytest.raises(RuntimeError, match=GONE):
            call()
    assert not any(bool((other != 0).any()) for other in others)
    assert bool((whole[:1].cpu() == 0).all()) if kept_bytes else True


def test_bytes_are_no_truth_values() -> None:
    numbers = torch.tensor([1, 0, 2, 255], dtype=torch.uint8, device="npu")
    with pytest.raises(NotImplementedError, match=r"view of Byte as bool.*use x != 0"):
        numbers.view(torch.bool)
    assert numbers.view(torch.int8).tolist() == [1, 0, 2, -1]
    assert (numbers != 0).view(torch.uint8).tolist() == [1, 0, 1, 1]
    assert (numbers != 0).view(torch.bool).tolist() == [True, False, True, True]


@pytest.mark.parametrize("name", ["remainder", "fmod"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_rest_of_an_integer_is_that_of_its_rounded_value(name: str, dtype: torch.dtype) -> None:
    whole, parts = torch.arange(1000, 4200, 7), torch.tensor([7.0]).to(dtype)
    for left, right in ((whole, parts), (parts.expand(3), whole[:3])):
        with torch.npu.check() as report:
            found = getattr(torch, name)(left.to("npu"), right.to("npu"))
        assert torch.equal(found.cpu(), getattr(torch, name)(left, right))
        assert report.elements == found.numel()


def test_alpha_of_0_leaves_a_product_out() -> None:
    infinite, two = torch.tensor([[torch.inf]]), torch.tensor([[2.0]])
    with torch.npu.check():
        for op, args in (
            (torch.addmm, (two, infinite, two)),
            (torch.addmv, (two[0], infinite, two[0])),
        ):
            found = op(*(x.to("npu") for x in args), alpha=0)
            assert torch.equal(found.cpu(), op(*args, alpha=0))


X, W = torch.randn(1, 2, 5, 5), torch.randn(2, 2, 3, 3)
CONVOLUTIONS: dict[str, Callable[[str], object]] = {
    "bias of a transposed one": lambda d: functional.conv_transpose2d(
        X.to(d), W.to(d), torch.zeros(5, device=d)
    ),
    "output_padding": lambda d: functional.conv_transpose2d(X.to(d), W.to(d), output_padding=2),
    "dilation": lambda d: functional.conv2d(X.to(d), W.to(d), dilation=0),
    "transposed dilation": lambda d: functional.conv_transpose2d(X.to(d), W.to(d), dilation=0),
    "no filters": lambda d: functional.conv2d(X.to(d), W[:0].to(d)),
    "bias": lambda d: functional.conv2d(X.to(d), W.to(d), torch.zeros(3, device=d)),
    "stride": lambda d: functional.conv2d(X.to(d), W.to(d), stride=0),
    "transposed stride": lambda d: functional.conv_transpose2d(X.to(d), W.to(d), stride=0),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_that_the_cpu_refuses_is_refused(name: str) -> None:
    for device in ("cpu", "npu"):
        with pytest.raises(RuntimeError) as caught:
            CONVOLUTIONS[name](device)
        assert str(caught.value)
        assert type(caught.value) is RuntimeError


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_a_mask_of_numbers_is_refused(dtype: torch.dtype) -> None:
    mask = torch.tensor([1, 0, 2], dtype=dtype, device="npu")
    for value in (5.0, torch.tensor(5.0, device="npu")):
        with pytest.raises(RuntimeError, match="only supports boolean masks"):
            torch.ones(3, device="npu").masked_fill(mask, value)


def test_distances_of_a_negative_order_are_refused() -> None:
    rows = torch.ones(2, 3, device="npu")
    with pytest.raises(RuntimeError, match="only supports non-negative p"):
        torch.cdist(rows, rows, p=-1.0)


def test_sizes_that_the_cpu_refuses_are_refused() -> None:
    x = torch.ones(6, 4, device="npu")
    with pytest.raises(RuntimeError, match="expanded size"):
        torch.addmm(torch.ones(6, 6, device="npu"), x, torch.ones(4, 5, device="npu"), beta=0)
    with pytest.raises(IndexError, match="supposed to be a vector"):
        torch.index_select(x, 0, torch.tensor([[1]], device="npu"))


def test_names_that_are_no_text_are_refused() -> None:
    for call in (torch.npu.set_backend, torch.npu.register_cpu_fallback):
        with pytest.raises(InputError, match="got 3, expected"):
            call(3)  # type: ignore[arg-type]
