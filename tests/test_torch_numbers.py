# SPDX-License-Identifier: Apache-2.0
"""Numbers of Python beside tensors of 16 bits: exact, as the NPU and its judge both have them.

Next to a number that no type of 16 bits has, sums cancel, so that a rounded one is another result.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

VALUES = [-3.14, -2.98242, 3.14, 1.001, -0.1, 2048.0]


def column(x: Tensor) -> Tensor:
    return x[:, None].contiguous()


def adamw(x: Tensor) -> Tensor:
    parameter = torch.nn.Parameter(x.clone())
    parameter.grad = x.clone()
    torch.optim.AdamW([parameter], lr=0.0103, weight_decay=0.013).step()
    return parameter


PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "x + number": lambda x: x + 3.14,
    "number + x": lambda x: 3.14 + x,
    "x - number": lambda x: x - 3.14,
    "number - x": lambda x: 3.14 - x,
    "add, alpha": lambda x: torch.add(x, 1.57, alpha=2),
    "rsub, alpha": lambda x: torch.rsub(x, -6.28, alpha=2),
    "add_": lambda x: x.clone().add_(3.14),
    "x + integer": lambda x: x + 2049,
    "integer - x": lambda x: 2049 - x,
    "x + float64": lambda x: x + torch.tensor(3.14, dtype=torch.float64),
    "x + float32": lambda x: x + torch.tensor(3.14),
    "x * number": lambda x: x * 1.0009,
    "x / number": lambda x: x / 1.0009,
    "number / x": lambda x: 1.0009 / x,
    "x // number": lambda x: x // 0.1,
    "number // x": lambda x: 3.14 // x,
    "x % number": lambda x: x % 0.1,
    "number % x": lambda x: 3.14 % x,
    "fmod": lambda x: torch.fmod(x, 0.1),
    "trunc": lambda x: torch.div(x, 0.1, rounding_mode="trunc"),
    "x ** number": lambda x: x.abs() ** 1.0009,
    "number ** x": lambda x: 1.0009**x,
    "lerp": lambda x: torch.lerp(x, -2 * x, 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.318),
    "addcdiv": lambda x: torch.addcdiv(x, x, x, value=3.14),
    "where": lambda x: torch.where(x > 0, x, 3.14),
    "clamp": lambda x: x.clamp(-2.999, 2.999),
    "x == number": lambda x: x == -3.14,
    "x < number": lambda x: x < -3.14,
    "x == integer": lambda x: 0 * x + 2048 == 2049,
    "masked_fill": lambda x: x.masked_fill(x < 0, 3.14),
    "threshold": lambda x: functional.threshold(x, -3.14, 7.3),
    "hardshrink": lambda x: functional.hardshrink(x, 3.139),
    "softshrink": lambda x: functional.softshrink(x, 3.139),
    "elu": lambda x: functional.elu(x, 1.0009),
    "softplus": lambda x: functional.softplus(x, 1.003),
    "copysign": lambda x: torch.copysign(x, -0.1),
    "xlogy": lambda x: torch.xlogy(x, 3.14),
    "isclose": lambda x: torch.isclose(x, x + 0.01, 1e-3, 1e-3),
    "huber_loss": lambda x: functional.huber_loss(x, x + 0.5, delta=0.503),
    "layer_norm": lambda x: functional.layer_norm(x, (6,), eps=1.3e-3),
    "addmm": lambda x: torch.addmm(x, column(x), column(x).t(), beta=0.3, alpha=0.1),
    "linspace": lambda x: torch.linspace(0.1, 3.14, 7, dtype=x.dtype, device=x.device),
    "AdamW": adamw,
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_check_mode_passes_numbers_beside_16_bits(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    with torch.npu.check(tmp_path) as report:
        PROGRAMS[name](torch.tensor(VALUES, dtype=dtype).to("npu"))
    assert report.elements >= len(VALUES)


EXACT: dict[str, Callable[[Tensor], Tensor]] = {
    name: PROGRAMS[name]
    for name in (
        *("x + number", "number - x", "add, alpha", "x + integer", "x * number", "number ** x"),
        "softshrink",
    )
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", EXACT)
def test_a_number_is_not_rounded_to_16_bits(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(VALUES, dtype=dtype)
    found = EXACT[name](x.to("npu")).cpu().double()
    exact = EXACT[name](x.double())
    apart = (found - exact).abs() / exact.abs().clamp(min=1e-30)
    assert torch.all((found == exact) | (apart <= torch.finfo(dtype).eps))
