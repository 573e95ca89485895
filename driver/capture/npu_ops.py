# SPDX-License-Identifier: Apache-2.0
"""torch.ops.npu: ops that ATen has not, with what they mean as CPU kernels.

Importing this registers them. A capture records them whole; how the NPU computes them is the op
table's business, how exactly golden's. Kernels compute in fp32 (float64 on float64 operands) and
round once.
"""

from __future__ import annotations

import torch

from driver.capture import npu_optimizer_ops

Tensor = torch.Tensor

INT8_MIN, INT8_MAX = -128, 127
INT4_ZERO = 8
"""The nibble that stands for 0."""

INT4_BITS = 4

_LIBRARY = torch.library.Library("npu", "DEF")


def _working(*tensors: Tensor) -> torch.dtype:
    wide = any(tensor.dtype == torch.float64 for tensor in tensors)
    return torch.float64 if wide else torch.float32


def _along(values: Tensor, like: Tensor, axis: int | None) -> Tensor:
    """Scales or zero points as they apply to `like`: one for all, or one per index of `axis`."""
    if axis is None:
        return values
    shape = [1] * like.dim()
    shape[axis] = -1
    return values.reshape(shape)


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x·cos + rotate_half(x)·sin over the last dimension, rotate_half(x) = [−x₂, x₁]."""
    dtype = _working(x, cos, sin)
    low, high = x.to(dtype).chunk(2, -1)
    turned = torch.cat([-high, low], -1)
    return (x.to(dtype) * cos.to(dtype) + turned * sin.to(dtype)).to(x.dtype)


def quantize(x: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None = None) -> Tensor:
    """int8: x ÷ scale to the nearest integer, ties to even, plus zero point, saturated."""
    dtype = _working(x, scale)
    ratio = x.to(dtype) / _along(scale.to(dtype), x, axis)
    shifted = ratio.round() + _along(zero_point.to(dtype), x, axis)
    return shifted.clamp(INT8_MIN, INT8_MAX).to(torch.int8)


def dequantize(q: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None = None) -> Tensor:
    """(q − zero point) · scale, of the scale's type."""
    dtype = _working(scale)
    centred = q.to(dtype) - _along(zero_point.to(dtype), q, axis)
    return (centred * _along(scale.to(dtype), q, axis)).to(scale.dtype)


def requantize(acc: Tensor, scale: Tensor, zero_point: Tensor, axis: int | None = None) -> Tensor:
    """int8 from int32 sums: acc · scale to the nearest integer, ties to even, plus zero point,
    saturated."""
    dtype = _working(scale)
    product = acc.to(dtype) * _along(scale.to(dtype), acc, axis)
    shifted = product.round() + _along(zero_point.to(dtype), acc, axis)
    return shifted.clamp(INT8_MIN, INT8_MAX).to(torch.int8)


def int4_weights(weight: Tensor, scales: Tensor, group_size: int) -> Tensor:
    """[8·R, N] of the scales' type from int32 words [R, N]: row 8k + j in bits 4j to 4j + 3 of row
    k; a nibble n is (n − 8) times the scale of its group of rows and its column."""
    shifts = torch.arange(0, 32, INT4_BITS, dtype=torch.int32, device=weight.device)
    nibbles = (weight[:, None] >> shifts[:, None] & 15).reshape(-1, weight.shape[1])
    dtype = _working(scales)
    wide = scales.to(dtype).repeat_interleave(group_size, 0)[: nibbles.shape[0]]
    return ((nibbles.to(dtype) - INT4_ZERO) * wide).to(scales.dtype)


def int4_mm(x: Tensor, weight: Tensor, scales: Tensor, group_size: int) -> Tensor:
    """x [M, K] · weights [K, N]: words [⌈K/8⌉, N], x and scales [⌈K/group_size⌉, N] of one type,
    weights rounded to it (`int4_weights`). group_size: a power of two, at least 8."""
    return torch.mm(x, int4_weights(weight, scales, group_size)[: x.shape[1]])


_AXIS = "int? axis=None"
_SCHEMAS = {
    f"quantize(Tensor x, Tensor scale, Tensor zero_point, {_AXIS}) -> Tensor": quantize,
    f"dequantize(Tensor q, Tensor scale, Tensor zero_point, {_AXIS}) -> Tensor": dequantize,
    f"requantize(Tensor acc, Tensor scale, Tensor zero_point, {_AXIS}) -> Tensor": requantize,
    "int4_mm(Tensor x, Tensor weight, Tensor scales, int group_size) -> Tensor": int4_mm,
    "rotary(Tensor x, Tensor cos, Tensor sin) -> Tensor": rotary,
}

for _schema, _kernel in _SCHEMAS.items():
    _LIBRARY.define(_schema)
    for _key in ("CPU", "Meta"):
        _LIBRARY.impl(_schema.partition("(")[0], _kernel, _key)
for _name, _schema in npu_optimizer_ops.SCHEMAS.items():
    _LIBRARY.define(f"{_name}{_schema}")
    _LIBRARY.impl(_name, npu_optimizer_ops.KERNELS[_name], "CPU")
    _LIBRARY.impl(_name, npu_optimizer_ops.written(_name), "Meta")
