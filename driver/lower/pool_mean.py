# SPDX-License-Identifier: Apache-2.0
"""Means of windows: sums as driver.lower.pool has them, divided by the positions that count."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.conv import each
from driver.lower.convert import require_floats
from driver.lower.elementwise import divide_by, is_power_of_two
from driver.lower.pool import PoolingAxis, axes_of, pooled
from driver.lower.reduce import reduce
from driver.lower.registry import LoweringTable, RuleFunction
from driver.runtime.views import TensorView

TABLE = LoweringTable()
_FEW = 16
"""Windows of so many elements are cheaper position by position than as reductions."""


def _average(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    dims: int,
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
    *,
    count_padding: bool = True,
    divisor: int | None = None,
) -> None:
    """The mean of each window (kernel, stride, padding); divided by the positions that count, or
    by the number given."""
    require_floats(b, x)
    axes = axes_of(x, out, dims, *windows)
    counts = counts_of(axes, count_padding=count_padding, divisor=divisor)
    whole = prod(line[0] for line in counts)
    alike = all(len(set(line)) == 1 for line in counts)
    last = axes[-1]
    one_pass = last.is_inside and (last.size == 2 or (last.size > 2 and out.dtype is DType.FP32))
    if alike and one_pass and is_power_of_two(whole):  # partial sums stay fp32
        pooled(b, "sum", x, out, axes, 1.0 / whole)
        return
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    pooled(b, "sum", x, sums, axes)
    divide_by_counts(b, sums, out, counts)


def counts_of(
    axes: Sequence[PoolingAxis], *, count_padding: bool, divisor: int | None
) -> list[list[int]]:
    """For each dimension, the positions of each window; their product is what a sum is divided
    by: the positions that count, or the number given."""
    if divisor is not None:
        return [[divisor] * axes[0].count, *([1] * axis.count for axis in axes[1:])]
    return [
        [axis.elements(window, padding=count_padding) for window in range(axis.count)]
        for axis in axes
    ]


def _mean(dims: int) -> RuleFunction:
    """The mean of each window."""

    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...] = (),
        padding: tuple[int, ...] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        windows = (kernel_size, stride, padding)
        _average(
            b,
            out,
            self,
            dims,
            windows,
            count_padding=count_include_pad,
            divisor=divisor_override,
        )

    return rule


for _dims in (2, 3):
    TABLE.op(f"avg_pool{_dims}d")(_mean(_dims))


def divide_by_counts(
    b: ProgramBuilder, sums: TensorView, out: TensorView, counts: Sequence[Sequence[int]]
) -> None:
    """out = sums ÷ the product of the counts of each dimension"""
    if all(len(set(line)) == 1 for line in counts):
        divide_by(b, sums, out, prod(line[0] for line in counts))
        return
    divisor = _vector(b, counts[0])
    for number, line in enumerate(counts[1:], 1):
        wider = b.temp(DType.FP32, out.sizes[out.rank - len(counts) :][: number + 1])
        b.vector("mul", (divisor.inserted(divisor.rank), _vector(b, line)), wider)
        divisor = wider
    b.vector("div", (sums, divisor), out)


def _vector(b: ProgramBuilder, values: Sequence[int]) -> TensorView:
    """The numbers in memory, one fill for each run of equal ones."""
    line = b.temp(DType.FP32, (len(values),))
    start = 0
    for at in range(1, len(values) + 1):
        if at == len(values) or values[at] != values[start]:
            b.fill(line.sliced(0, start, at - start), float(values[start]))
            start = at
    return line


def adaptive_bounds(length: int, count: int) -> list[tuple[int, int]]:
    """Where each of `count` windows over `length` positions starts and stops."""
    return [(at * length // count, -(-(at + 1) * length // count)) for at in range(count)]


def _adaptive(dims: int) -> RuleFunction:
    """Means of windows that divide the image as evenly as they can."""

    def rule(
        b: ProgramBuilder, out: TensorView, self: TensorView, output_size: tuple[int, ...]
    ) -> None:
        lengths, counts = self.sizes[-dims:], out.sizes[-dims:]
        if all(length % count == 0 for length, count in zip(lengths, counts, strict=True)):
            kernel = tuple(length // count for length, count in zip(lengths, counts, strict=True))
            if prod(kernel) <= _FEW:
                _average(b, out, self, dims, (kernel, (), each((0,), dims)))
                return
        bounds = [adaptive_bounds(*sizes) for sizes in zip(lengths, counts, strict=True)]
        sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
        x = self
        for number, line in enumerate(bounds):
            dim, last = self.rank - dims + number, number == dims - 1
            sizes = (*x.sizes[:dim], len(line), *x.sizes[dim + 1 :])
            target = sums if last else b.temp(DType.FP32, sizes)
            for at, (start, stop) in enumerate(line):
                part = x.sliced(dim, start, stop - start)
                reduce(b, "sum", part, target.sliced(dim, at, 1), (dim,))
            x = target
        divide_by_counts(b, sums, out, [[stop - start for start, stop in line] for line in bounds])

    return rule


for _dims in (2, 3):
    TABLE.op(f"_adaptive_avg_pool{_dims}d", f"adaptive_avg_pool{_dims}d")(_adaptive(_dims))
