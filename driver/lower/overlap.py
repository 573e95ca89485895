# SPDX-License-Identifier: Apache-2.0
"""Windows that overlap, added up where they lie."""

from __future__ import annotations

from math import prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert
from driver.runtime.views import TensorView


def add_windows(
    b: ProgramBuilder,
    columns: TensorView,
    out: TensorView,
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    stride: tuple[int, ...],
    bias: TensorView | None = None,
) -> None:
    """out […, spatial…] = bias + Σ of columns […, kernel…, positions…] where they lie, in fp32.

    One pass per place in the window, in row-major order; what lies in the padding is left out.
    """
    dims = len(stride)
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    if bias is None:
        b.fill(sums, 0.0)
    else:
        convert(b, bias, sums)
    lead = columns.rank - 2 * dims
    kernel = columns.sizes[lead : lead + dims]
    for number in range(prod(kernel)):
        source, target = columns, sums
        for at in range(dims):
            place = number // prod(kernel[at + 1 :]) % kernel[at]
            offset = place * dilation[at] - padding[at]
            first = max(0, -(offset // stride[at]))
            last = (sums.sizes[lead + at] - 1 - offset) // stride[at]
            count = min(last + 1, columns.sizes[lead + dims + at]) - first
            source = source.selected(lead, place).sliced(lead + dims - 1, first, count)
            start = first * stride[at] + offset
            target = target.sliced(lead + at, start if count > 0 else 0, count, stride[at])
        if target.count:
            b.vector("add", (target, source), target, 1.0)
    if sums is not out:
        convert(b, sums, out)
