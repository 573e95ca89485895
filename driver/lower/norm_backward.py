# SPDX-License-Identifier: Apache-2.0
"""Gradients of normalisations, from the statistics that the forward op saved.

With n = (x − mean)·r: grad_input = (g − n·mean of g·n − mean of g)·r·weight, grad_weight = Σ g·n,
grad_bias = Σ g. rms_norm has n = x·r and nothing of means of g. Everything between packets is fp32.
"""

from __future__ import annotations

from math import prod

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, require_floats
from driver.lower.elementwise import divide_by
from driver.lower.norm import channels
from driver.lower.reduce import summed
from driver.lower.registry import LoweringTable, Scalar
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Optional = TensorView | None


def _normalised(
    b: ProgramBuilder, x: TensorView, mean: TensorView, r: TensorView, grad: TensorView
) -> tuple[TensorView, TensorView]:
    """(n, g·n)"""
    require_floats(b, x)
    normal, product = (b.temp(DType.FP32, x.sizes) for _ in range(2))
    b.vector("sub_scale", (x, mean, r), normal)
    b.vector("mul", (grad, normal), product)
    return normal, product


def _without_means(
    b: ProgramBuilder,
    out: TensorView,
    grad: TensorView,
    normal: TensorView,
    sums: tuple[TensorView, TensorView],
    scale: TensorView,
) -> None:
    """out = (g − n·Σ(g·n) ÷ K − Σ g ÷ K)·scale; `sums`: of g·n and of g, over K elements each."""
    count = out.count // max(sums[0].count, 1)
    means = [b.temp(DType.FP32, total.sizes) for total in sums]
    for total, average in zip(sums, means, strict=True):
        divide_by(b, total, average, count)
    rest = b.temp(DType.FP32, out.sizes)
    b.vector("sub_mul", (normal, means[0], grad), rest)
    b.vector("sub_scale", (rest, means[1], scale), out)


@TABLE.op("native_batch_norm_backward", outputs=3)
def batch_norm_backward(
    b: ProgramBuilder,
    outs: tuple[Optional, ...],
    grad_out: TensorView,
    input: TensorView,
    weight: Optional,
    running_mean: Optional,
    running_var: Optional,
    save_mean: Optional,
    save_invstd: Optional,
    train: bool,
    eps: Scalar,
    output_mask: tuple[bool, ...],
) -> None:
    """By the batch's statistics; in evaluation by the running ones, which are constants"""
    mean, r = (save_mean, save_invstd) if train else (running_mean, running_var)
    if mean is None or r is None:
        name = "save_mean" if train else "running_mean"
        raise b.unsupported(name, None, "the statistics of the forward op")
    if not train:
        root = b.temp(DType.FP32, r.sizes)
        b.vector("rsqrt_affine", (r,), root, 1.0, float(eps))
        r = root
    grad_input, grad_weight, grad_bias = outs
    dims = (0, *range(2, input.rank))
    mean, r = (channels(view, max(input.rank, 2)) for view in (mean, r))
    scale = r
    if weight is not None:
        scale = b.temp(DType.FP32, r.sizes)
        b.vector("mul", (r, channels(weight, max(input.rank, 2))), scale)
    if grad_input is not None and not train:
        b.vector("mul", (grad_out, scale), grad_input)
        if grad_weight is None and grad_bias is None:
            return
    normal, product = _normalised(b, input, mean, r, grad_out)
    sums = (summed(b, product, dims), summed(b, grad_out, dims))
    if grad_input is not None and train:
        _without_means(b, grad_input, grad_out, normal, sums, scale)
    for total, view in zip(sums, (grad_weight, grad_bias), strict=True):
        if view is not None:
            convert(b, total.reshaped(total.sizes[1:2], total.strides[1:2]), view)


@TABLE.op("native_layer_norm_backward", outputs=3)
def layer_norm_backward(
    b: ProgramBuilder,
    outs: tuple[Optional, ...],
    grad_out: TensorView,
    input: TensorView,
    normalized_shape: tuple[int, ...],
    mean: TensorView,
    rstd: TensorView,
    weight: Optional,
    bias: Optional,
    output_mask: tuple[bool, ...],
) -> None:
    """Sums of g·weight along each row, of g and of g·n over the rows"""
    grad_input, grad_weight, grad_bias = outs
    outer = input.rank - len(normalized_shape)
    rows, inner = tuple(range(outer)), tuple(range(outer, input.rank))
    normal, product = _normalised(b, input, mean, rstd, grad_out)
    for terms, view in ((product, grad_weight), (grad_out, grad_bias)):
        if view is not None:
            total = summed(b, terms, rows)
            convert(b, total.reshaped(total.sizes[outer:], total.strides[outer:]), view)
    if grad_input is None:
        return
    grad = grad_out
    if weight is not None:
        grad = b.temp(DType.FP32, input.sizes)
        b.vector("mul", (grad_out, weight), grad)
        b.vector("mul", (grad, normal), product)
    sums = (summed(b, product, inner), summed(b, grad, inner))
    _without_means(b, grad_input, grad, normal, sums, rstd)


@TABLE.op("native_group_norm_backward", outputs=3)
def group_norm_backward(
    b: ProgramBuilder,
    outs: tuple[Optional, ...],
    grad_out: TensorView,
    input: TensorView,
    mean: TensorView,
    rstd: TensorView,
    weight: Optional,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: tuple[bool, ...],
) -> None:
    """As layer_norm_backward, each group of channels of each image a row"""
    grad_input, grad_weight, grad_bias = outs
    x, grad = (view.split(1, (group, C // group)) for view in (input, grad_out))
    inner = tuple(range(2, x.rank))
    mean, r = (
        view.reshaped((N, group, *(1,) * len(inner)), (*view.strides, *(0,) * len(inner)))
        for view in (mean, rstd)
    )
    normal, product = _normalised(b, x, mean, r, grad)
    for terms, view in ((product, grad_weight), (grad, grad_bias)):
        if view is not None:
            total = summed(b, terms, (0, *inner[1:]))
            target = view.split(0, (group, C // group))
            convert(b, total.reshaped(target.sizes, total.strides[1:3]), target)
    if grad_input is None:
        return
    if weight is not None:
        scaled = b.temp(DType.FP32, x.sizes)
        b.vector("mul", (grad, channels(weight, input.rank).split(0, (group, C // group))), scaled)
        b.vector("mul", (scaled, normal), product)
        grad = scaled
    sums = (summed(b, product, inner), summed(b, grad, inner))
    _without_means(b, grad_input.split(1, (group, C // group)), grad, normal, sums, r)


@TABLE.op("_fused_rms_norm_backward", outputs=2)
def rms_norm_backward(
    b: ProgramBuilder,
    outs: tuple[Optional, ...],
    grad_out: TensorView,
    input: TensorView,
    normalized_shape: tuple[int, ...],
    rstd: TensorView,
    weight: Optional,
    output_mask: tuple[bool, ...],
) -> None:
    """(g·weight − n·mean of g·weight·n)·r, and Σ g·n over the rows"""
    grad_input, grad_weight = outs
    require_floats(b, input)
    outer = input.rank - len(normalized_shape)
    inner = tuple(range(outer, input.rank))
    normal, product = (b.temp(DType.FP32, input.sizes) for _ in range(2))
    b.vector("mul", (input, rstd), normal)
    b.vector("mul", (grad_out, normal), product)
    if grad_weight is not None:
        total = summed(b, product, tuple(range(outer)))
        convert(b, total.reshaped(total.sizes[outer:], total.strides[outer:]), grad_weight)
    if grad_input is None:
        return
    grad = grad_out
    if weight is not None:
        grad = b.temp(DType.FP32, input.sizes)
        b.vector("mul", (grad_out, weight), grad)
        b.vector("mul", (grad, normal), product)
    average = summed(b, product, inner)
    divide_by(b, average, average, prod(normalized_shape))
    b.vector("sub_mul", (normal, average, grad), product)
    b.vector("mul", (product, rstd), grad_input)
