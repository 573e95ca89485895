# SPDX-License-Identifier: Apache-2.0
"""Gradients of convolution: of the input, of the weights and of the bias.

The input's is the convolution of the gradient with the weights, transposed the other way. The
weights' is one product per group, [O, N·positions] · [N·positions, C·K], of the gradient with the
input's windows laid out in memory, part by part; a transposed convolution has gradient and input
exchanged there. Everything between packets is fp32.
"""

from __future__ import annotations

from math import prod

from driver.isa import DType
from driver.lower import conv_transpose
from driver.lower.builder import ProgramBuilder
from driver.lower.conv import Convolution, Windows, bordered, by_windows, each
from driver.lower.convert import convert, is_float
from driver.lower.matmul import product
from driver.lower.reduce import summed
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView, dense

TABLE = LoweringTable()


@TABLE.op("convolution_backward", outputs=3)
def convolution_backward(
    b: ProgramBuilder,
    outs: tuple[TensorView | None, ...],
    grad_output: TensorView,
    input: TensorView,
    weight: TensorView,
    bias_sizes: tuple[int, ...] | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
    output_mask: tuple[bool, ...],
) -> None:
    """Two products and a sum; none for what is not wanted"""
    for view in (grad_output, input, weight):
        if not is_float(view):
            raise b.unsupported("dtype", view.dtype.name, "a floating-point type")
    grad_input, grad_weight, grad_bias = outs
    rank = weight.rank - 2
    stride, padding, dilation = (each(step, rank) for step in (stride, padding, dilation))
    windows = Windows(weight.sizes[2:], stride, dilation)
    if grad_input is not None and not grad_output.count:
        b.fill(grad_input, 0)
    elif grad_input is not None and transposed:
        call = Convolution(grad_output, weight, None, padding, windows, groups)
        by_windows(b, grad_input, call)
    elif grad_input is not None:
        steps = (stride, padding, dilation)
        conv_transpose.transposed(b, grad_input, grad_output, weight, None, steps, groups)
    if grad_weight is not None:
        image, window = (grad_output, input) if transposed else (input, grad_output)
        _weight_gradient(b, grad_weight, bordered(b, image, padding), window, windows, groups)
    if grad_bias is not None:
        total = summed(b, grad_output, (0, *range(2, grad_output.rank)))
        convert(b, total.reshaped(total.sizes[1:2], total.strides[1:2]), grad_bias)


def _weight_gradient(
    b: ProgramBuilder,
    out: TensorView,
    image: TensorView,
    grad: TensorView,
    windows: Windows,
    groups: int,
) -> None:
    """out [O, C ÷ groups, kernel…] = Σ over images and positions of grad [N, O, positions…] times
    the windows of image [N, C, …], within its border."""
    if not grad.count:
        b.fill(out, 0)
        return
    plain = out if out.dtype is DType.FP32 and out.is_dense else b.temp(DType.FP32, out.sizes)
    depth = prod(out.sizes[1:])
    result = dense(plain.buffer, DType.FP32, (out.sizes[0], depth), plain.offset_bytes)
    room: TensorView | None = None
    for number, (part, target) in enumerate(windows.parts(image, _in_lines(b, grad))):
        if room is None:  # the first part is the largest
            room = b.temp(image.dtype, windows.view(part, target.sizes[2:]).sizes)
        right = _windows_in_lines(b, part, windows, target, room)
        left = target.permuted([1, 0, *range(2, target.rank)])
        inner = left.reshaped(left.sizes[1:], left.strides[1:]).flattened()
        assert inner is not None, "parts of lines are lines"
        left = left.reshaped((left.sizes[0], inner.count), (left.strides[0], *inner.strides))
        product(
            b,
            left.split(0, (groups, out.sizes[0] // groups)),
            right.split(0, (groups, depth)).transposed(),
            result.split(0, (groups, out.sizes[0] // groups)),
            accumulate=number > 0,
        )
    if plain is not out:
        convert(b, plain, out)


def _windows_in_lines(
    b: ProgramBuilder, image: TensorView, windows: Windows, grad: TensorView, room: TensorView
) -> TensorView:
    """[C·K, N·positions] of image [N, C, …], in the memory of `room`."""
    view = windows.view(image, grad.sizes[2:])
    kernel = range(2, 2 + len(windows.kernel))
    view = view.permuted([1, *kernel, 0, *range(kernel.stop, view.rank)])
    fresh = dense(room.buffer, image.dtype, view.sizes)
    b.copy(view, fresh)
    lines = image.sizes[1] * prod(windows.kernel)
    return dense(room.buffer, image.dtype, (lines, fresh.count // lines))


def _in_lines(b: ProgramBuilder, grad: TensorView) -> TensorView:
    """grad [N, O, positions…] whose images and positions lie in line for each channel, copied if
    its strides need it."""
    lines = grad.permuted([1, 0, *range(2, grad.rank)])
    if lines.reshaped(lines.sizes[1:], lines.strides[1:]).flattened() is not None:
        return grad
    fresh = b.temp(grad.dtype, lines.sizes)
    b.copy(lines, fresh)
    return fresh.permuted([1, 0, *range(2, grad.rank)])
