# SPDX-License-Identifier: Apache-2.0
"""Gradients of convolution: of the input, of the weights and of the bias.

The input's is the convolution of the gradient with the weights, transposed the other way. The
weights' is one product per group, [O, N·positions] · [N·positions, C·K], of the gradient with the
input's windows where they lie; a transposed convolution has gradient and input exchanged there.
Everything between packets is fp32.
"""

from __future__ import annotations

from driver.isa import DType
from driver.lower import conv_transpose
from driver.lower.builder import ProgramBuilder
from driver.lower.contraction import contract
from driver.lower.conv import (
    Convolution,
    Windows,
    bordered,
    by_channel,
    by_windows,
    each,
    windows_of,
)
from driver.lower.convert import convert, require_floats
from driver.lower.reduce import summed
from driver.lower.registry import LoweringTable
from driver.runtime.views import TensorView

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
    require_floats(b, grad_output, input, weight)
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
    rank = len(windows.kernel)
    sums = out if out.dtype is DType.FP32 else b.temp(DType.FP32, out.sizes)
    right = windows_of(image, windows, grad.sizes[2:], groups)
    taps, places = range(1, 2 + rank), range(2 + rank, right.rank)
    contract(
        b,
        by_channel(grad, groups),
        right.permuted([0, *places, *taps]),
        sums.split(0, (groups, out.sizes[0] // groups)),
        (1, 1 + rank, 1 + rank),
    )
    if sums is not out:
        convert(b, sums, out)
