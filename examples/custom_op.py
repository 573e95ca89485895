# SPDX-License-Identifier: Apache-2.0
"""Two ops of our own: to int8, and to int8 and back with a gradient. docs/custom-ops.md."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.runtime import TensorView
from golden.bounds import own
from tb.ops.samples import T

LOW, HIGH = -128, 127
SCALE, ZERO = T((), "positive", torch.float32), T((), "index", torch.int32, 9)


def levels(x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """The level of each element, before it is limited to int8."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return (x.to(wide) / scale.to(wide)).round() + zero_point


def quantized(x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """x ÷ scale to the nearest integer, plus zero point, limited to int8."""
    return levels(x, scale, zero_point).clamp(LOW, HIGH).to(torch.int8)


@torch.npu.custom_op(
    "mylib::quantize",
    reference=quantized,
    bound=own.equal,
    samples=[(T(), SCALE, ZERO)],
    dtypes=(torch.float32, torch.bfloat16),
)
def quantize(
    b: ProgramBuilder, out: TensorView, x: TensorView, scale: TensorView, zero_point: TensorView
) -> None:
    """One pass."""
    b.vector("quantize", (x, scale, zero_point), out)


def there_and_back(x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """The number that stands for each element in int8."""
    level = levels(x, scale, zero_point).clamp(LOW, HIGH)
    return ((level - zero_point) * scale).to(x.dtype)


def keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    """What the gradient needs."""
    ctx.save_for_backward(*inputs)


def straight_through(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """As if nothing had been rounded; nothing where the level was limited."""
    level = levels(*ctx.saved_tensors)
    return torch.where((level < LOW) | (level > HIGH), 0.0, grad), None, None


@torch.npu.custom_op(
    "mylib::fake_quantize",
    reference=there_and_back,
    bound=own.equal,
    samples=[(T(), SCALE, ZERO), (T((4, 3)), T((4, 1), "positive", torch.float32), ZERO)],
    dtypes=(torch.float32, torch.float16),
    backward=straight_through,
    setup_context=keep,
    autocast=torch.float32,
)
def fake_quantize(
    b: ProgramBuilder, out: TensorView, x: TensorView, scale: TensorView, zero_point: TensorView
) -> None:
    """Two passes, with int8 in between."""
    level = b.temp(DType.INT8, out.sizes)
    b.vector("quantize", (x, scale, zero_point), level)
    b.vector("dequantize", (level, scale, zero_point), out)
