# SPDX-License-Identifier: Apache-2.0
"""Products with a zero whose parts overflow, places in sorted rows, results in the type of `out`:
as CPU torch has them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

Tensor = torch.Tensor
NAN, INF = torch.nan, torch.inf


def _on(device: str, values: object, dtype: torch.dtype | None = None) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


PROGRAMS: dict[str, Callable[[str], Tensor]] = {
    "cumprod": lambda d: torch.arange(0.0, 60.0, device=d).cumprod(0),
    "cumprod beside infinities": lambda d: _on(d, [[1e30, 0, 1e30, INF, 2]]).cumprod(1),
    "cumprod of 16 bits": lambda d: _on(d, [300.0, 0, 300, 300], torch.half).cumprod(0),
    "prod": lambda d: _on(d, [0.0, 1e30, 1e30, 1e30]).prod(),
    "prod of rows": lambda d: _on(d, [[0.0, 1e30, 1e30], [2, 3, 4]]).prod(1),
    "prod of an infinity": lambda d: _on(d, [0.0, 1e30, INF, 1e30]).prod(),
    "prod of a NaN": lambda d: _on(d, [0.0, 1e30, NAN]).prod(),
    **{
        f"{number} among {edges}, right {right}": lambda d, n=number, e=edges, r=right: (
            torch.searchsorted(_on(d, e), n, right=r)
        )
        for edges in ([1, 2, 3], [0.0, 1.0, 2.0])
        for number in (2.5, 2, NAN, INF, -INF)
        for right in (False, True)
    },
    "a number that wraps": lambda d: torch.searchsorted(_on(d, [1, 2, 127], torch.int8), 300),
    **{
        f"{number} among all of int8": lambda d, n=number: torch.searchsorted(
            _on(d, [-128, 0, 127], torch.int8), n
        )
        for number in (127.0, 126.5, 127.5, -128.0, -128.5)
    },
    "edges that are NaN": lambda d: torch.searchsorted(
        _on(d, [0.0, 1.0, 2.0, NAN]), _on(d, [0.5, 1.5, NAN, 3.0])
    ),
    "fractions among integers": lambda d: torch.searchsorted(
        _on(d, [1, 2, 3]), _on(d, [0.5, 2.5, NAN])
    ),
    **{
        f"{name} of fp16 in fp32": lambda d, f=name, n=count, s=shape: getattr(torch, f)(
            _on(d, [30000.0, 30000, 2, 3], torch.half)[:n], 0, out=torch.empty(s, device=d)
        )
        for name, count, shape in (
            ("sum", 4, ()),
            ("nansum", 4, ()),
            ("mean", 4, ()),
            ("prod", 2, ()),
            ("cumsum", 4, (4,)),
            ("cumprod", 2, (2,)),
        )
    },
    "sum of fractions in integers": lambda d: torch.sum(
        _on(d, [1.5, 2.5]), 0, out=torch.empty((), dtype=torch.int64, device=d)
    ),
    "a boundary that is NaN": lambda d: torch.bucketize(_on(d, [0.5]), _on(d, [0.0, 1.0, NAN])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_on_the_cpu(name: str) -> None:
    expected, found = PROGRAMS[name]("cpu"), PROGRAMS[name]("npu").cpu()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0, equal_nan=True)


def test_places_and_elements_that_a_mask_picks_go_into_their_own_type() -> None:
    x = torch.tensor([3.7, -1.2], device="npu")
    with pytest.raises(RuntimeError, match=r"dtype torch\.float32, but got torch\.int32"):
        torch.masked_select(x, x > 0, out=torch.empty(0, dtype=torch.int32, device="npu"))
    with pytest.raises(RuntimeError, match=r"dtype torch\.int64, but got torch\.uint8"):
        torch.nonzero(x, out=torch.empty(0, dtype=torch.uint8, device="npu"))


def test_integers_that_fp16_does_not_hold_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="65504"):
        torch.randint(0, 100_000, (5,), dtype=torch.half, device="npu")


def test_a_generator_is_of_the_device_of_the_op() -> None:
    with pytest.raises(RuntimeError, match="'npu' device type for generator but found 'cpu'"):
        torch.randn(3, device="npu", generator=torch.Generator("cpu"))


@pytest.mark.parametrize("name", ["abs", "ceil", "floor", "trunc", "round", "relu", "trace"])
def test_ops_of_numbers_take_no_truth_values(name: str) -> None:
    for device in ("cpu", "npu"):
        with pytest.raises((NotImplementedError, RuntimeError)):
            getattr(torch, name)(torch.ones(2, 2, dtype=torch.bool, device=device))
