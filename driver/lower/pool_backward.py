# SPDX-License-Identifier: Apache-2.0
"""Gradients of pooling.

A maximum's goes where its index says that it came from. A mean's is divided by the positions that
count and added to every position of its window, one dimension after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, require_floats
from driver.lower.elementwise import divide_by
from driver.lower.index import as_indices
from driver.lower.pool import PoolingAxis, axes_of, part_of
from driver.lower.pool_mean import adaptive_bounds, counts_of, divide_by_counts
from driver.lower.registry import LoweringTable, RuleFunction
from driver.lower.scatter import scatter
from driver.runtime.views import TensorView

TABLE = LoweringTable()


# ---------------------------------------------------------------------- maxima
def _merged(view: TensorView, dims: int) -> TensorView | None:
    """The last dimensions as one; None where memory has them otherwise."""
    inner = view.reshaped(view.sizes[-dims:], view.strides[-dims:]).flattened()
    if inner is None:
        return None
    return view.reshaped(
        (*view.sizes[:-dims], inner.count), (*view.strides[:-dims], *inner.strides)
    )


def _image_in_line(b: ProgramBuilder, view: TensorView, dims: int) -> TensorView:
    """Each image as one line, copied if its strides need it."""
    line = _merged(view, dims)
    if line is not None:
        return line
    fresh = b.temp(view.dtype, view.sizes)
    b.copy(view, fresh)
    return _image_in_line(b, fresh, dims)


def _to_maxima(
    b: ProgramBuilder, out: TensorView, grad: TensorView, indices: TensorView, dims: int
) -> None:
    """0, plus the gradient of each window at the place of its maximum in the image"""
    require_floats(b, grad)
    target = out if _merged(out, dims) is not None else b.temp(out.dtype, out.sizes)
    b.fill(target, 0.0)
    if grad.count:
        source, index = (_image_in_line(b, v, dims) for v in (grad, as_indices(b, indices)))
        line = _image_in_line(b, target, dims)
        scatter(b, source, index, line, line.rank - 1, accumulate=True)
    if target is not out:
        b.copy(target, out)


def _max_pool(dims: int) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        grad_output: TensorView,
        self: TensorView,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        ceil_mode: bool,
        indices: TensorView,
    ) -> None:
        _to_maxima(b, out, grad_output, indices, dims)

    return rule


def _adaptive_max_pool(dims: int) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        grad_output: TensorView,
        self: TensorView,
        indices: TensorView,
    ) -> None:
        _to_maxima(b, out, grad_output, indices, dims)

    return rule


# ---------------------------------------------------------------------- means
Spread = Callable[[TensorView, TensorView, int], None]
"""Adds [.., windows, ..] to each window's positions of [.., length, ..], in a dimension."""


def _along(b: ProgramBuilder, axis: PoolingAxis) -> Spread:
    """By the positions of all windows."""

    def spread(share: TensorView, out: TensorView, dim: int) -> None:
        for position in range(axis.size):
            windows = axis.valid(position)
            if windows:
                target = part_of(out, dim, axis, position, windows)
                source = share.sliced(dim, windows.start, len(windows))
                b.vector("add", (target, source), target, 1.0)

    return spread


def _over(b: ProgramBuilder, bounds: Sequence[tuple[int, int]]) -> Spread:
    """Window by window."""

    def spread(share: TensorView, out: TensorView, dim: int) -> None:
        for window, (start, stop) in enumerate(bounds):
            target = out.sliced(dim, start, stop - start)
            b.vector("add", (target, share.sliced(dim, window, 1)), target, 1.0)

    return spread


def _to_windows(
    b: ProgramBuilder,
    out: TensorView,
    grad: TensorView,
    counts: Sequence[Sequence[int]],
    spreads: Sequence[Spread],
) -> None:
    """0, plus the gradient of each window ÷ its count at all of its positions."""
    share = b.temp(DType.FP32, grad.sizes)
    divide_by_counts(b, grad, share, counts)
    first = out.rank - len(spreads)
    for number, spread in enumerate(spreads):
        dim, last = first + number, number == len(spreads) - 1
        sizes = (*share.sizes[:dim], out.sizes[dim], *share.sizes[dim + 1 :])
        target = out if last and out.dtype is DType.FP32 else b.temp(DType.FP32, sizes)
        b.fill(target, 0.0)
        spread(share, target, dim)
        share = target
    if share is not out:
        convert(b, share, out)


def _to_tiles(
    b: ProgramBuilder, out: TensorView, grad: TensorView, dims: int, divisor: int
) -> None:
    """The same for windows that fill the image side by side: one pass."""
    share = grad
    for at in range(dims):  # from the last dimension on, so that those before keep their place
        size, count = out.sizes[-1 - 2 * at], grad.sizes[-1 - at]
        out = out.split(-1 - 2 * at, (count, size // count))
        share = share.inserted(share.rank - 2 * at, size // count)
    divide_by(b, share, out, divisor)


def _are_tiles(out: TensorView, grad: TensorView, kernel: Sequence[int]) -> bool:
    """Whether the windows, of one size, fill the image side by side."""
    sizes = zip(out.sizes[-len(kernel) :], grad.sizes[-len(kernel) :], kernel, strict=True)
    return all(length == count * size for length, count, size in sizes)


def _avg_pool(dims: int) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        grad_output: TensorView,
        self: TensorView,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> None:
        """The gradient of each mean ÷ the positions that count, at every position of its window"""
        require_floats(b, grad_output)
        axes = axes_of(out, grad_output, dims, kernel_size, stride, padding)
        counts = counts_of(axes, count_padding=count_include_pad, divisor=divisor_override)
        kernel = [axis.size for axis in axes]
        apart = all(axis.stride == axis.size and not axis.pad for axis in axes)
        if apart and _are_tiles(out, grad_output, kernel):
            _to_tiles(b, out, grad_output, dims, divisor_override or prod(kernel))
        else:
            _to_windows(b, out, grad_output, counts, [_along(b, axis) for axis in axes])

    return rule


def _adaptive_avg_pool(dims: int) -> RuleFunction:
    def rule(b: ProgramBuilder, out: TensorView, grad_output: TensorView, self: TensorView) -> None:
        """The same for windows that divide the image as evenly as they can"""
        require_floats(b, grad_output)
        lengths, windows = out.sizes[-dims:], grad_output.sizes[-dims:]
        if all(length % count == 0 for length, count in zip(lengths, windows, strict=True)):
            _to_tiles(b, out, grad_output, dims, prod(lengths) // prod(windows))
            return
        bounds = [adaptive_bounds(*sizes) for sizes in zip(lengths, windows, strict=True)]
        counts = [[stop - start for start, stop in line] for line in bounds]
        _to_windows(b, out, grad_output, counts, [_over(b, line) for line in bounds])

    return rule


for _dims in (2, 3):
    TABLE.op(f"max_pool{_dims}d_with_indices_backward")(_max_pool(_dims))
    TABLE.op(f"adaptive_max_pool{_dims}d_backward")(_adaptive_max_pool(_dims))
    TABLE.op(f"avg_pool{_dims}d_backward")(_avg_pool(_dims))
    TABLE.op(f"_adaptive_avg_pool{_dims}d_backward")(_adaptive_avg_pool(_dims))
