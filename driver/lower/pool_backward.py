# SPDX-License-Identifier: Apache-2.0
"""Gradients of pooling: each maximum's gradient added where its index says that it came from."""

from __future__ import annotations

from driver.lower.builder import ProgramBuilder
from driver.lower.convert import is_float
from driver.lower.index import as_indices
from driver.lower.registry import LoweringTable
from driver.lower.scatter import scatter
from driver.runtime.views import TensorView

TABLE = LoweringTable()


def _merged(view: TensorView) -> TensorView | None:
    """The last two dimensions as one; None where memory has them otherwise."""
    if view.strides[-2] != view.sizes[-1] * view.strides[-1]:
        return None
    sizes = (*view.sizes[:-2], view.sizes[-2] * view.sizes[-1])
    return view.reshaped(sizes, (*view.strides[:-2], view.strides[-1]))


def _image_in_line(b: ProgramBuilder, view: TensorView) -> TensorView:
    """Each image as one line, copied if its strides need it."""
    line = _merged(view)
    if line is not None:
        return line
    fresh = b.temp(view.dtype, view.sizes)
    b.copy(view, fresh)
    return _image_in_line(b, fresh)


@TABLE.op("max_pool2d_with_indices_backward")
def max_pool_backward(
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
    """0, plus the gradient of each window at the place of its maximum in the image"""
    if not is_float(grad_output):
        raise b.unsupported("dtype", grad_output.dtype.name, "a floating-point type")
    image = _merged(out)
    target = out if image is not None else b.temp(out.dtype, out.sizes)
    b.fill(target, 0.0)
    if grad_output.count:
        source, index = (_image_in_line(b, v) for v in (grad_output, as_indices(b, indices)))
        line = _image_in_line(b, target)
        scatter(b, source, index, line, line.rank - 1, accumulate=True)
    if target is not out:
        b.copy(target, out)
