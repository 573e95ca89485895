# SPDX-License-Identifier: Apache-2.0
"""Ops that place elements: joins, copies, conversions, fills, ranges, triangles, padding."""

from __future__ import annotations

from collections.abc import Sequence

from driver.isa import DType
from driver.lower import long
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import convert, is_float
from driver.lower.long_views import high_words, is_long, low_words
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.lower.words import INT32_MAX, INT32_MIN
from driver.runtime.views import TensorView

TABLE = LoweringTable()
Option = str | bool | None
"""dtype, layout, device, pin_memory, memory_format: the result's view says what matters."""


# ---------------------------------------------------------------------- copies
@TABLE.op("clone", "contiguous", "_to_copy", "lift_fresh_copy", "alias_copy")
def copied(b: ProgramBuilder, out: TensorView, self: TensorView, **options: Option) -> None:
    """The elements, in the result's layout and type"""
    convert(b, self, out)


@TABLE.op("copy_", "copy")
def copy_into(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    src: TensorView,
    non_blocking: bool = False,
) -> None:
    """src broadcast over self, in self's type"""
    convert(b, src, out)


@TABLE.op("cat")
def cat(b: ProgramBuilder, out: TensorView, tensors: tuple[TensorView, ...], dim: int = 0) -> None:
    """The tensors one after the other along a dimension"""
    start = 0
    for tensor in tensors:
        if tensor.sizes != (0,):  # torch's old exception: an empty vector joins anything
            count = tensor.sizes[dim]
            convert(b, tensor, out.sliced(dim, start, count))
            start += count


@TABLE.op("stack")
def stack(
    b: ProgramBuilder, out: TensorView, tensors: tuple[TensorView, ...], dim: int = 0
) -> None:
    """The tensors side by side along a new dimension"""
    for index, tensor in enumerate(tensors):
        convert(b, tensor, out.selected(dim, index))


@TABLE.op("repeat")
def repeat(b: ProgramBuilder, out: TensorView, self: TensorView, repeats: tuple[int, ...]) -> None:
    """self so many times along each dimension"""
    new = len(repeats) - self.rank
    source, target = self, out
    for _ in range(new):
        source = source.inserted(0)
    for dim in reversed(range(len(repeats))):
        target = target.split(dim, (repeats[dim], source.sizes[dim]))
        source = source.inserted(dim)
    b.copy(b.expanded(source, target.sizes), target)


@TABLE.op("slice_scatter")
def slice_scatter(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    src: TensorView,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> None:
    """self with src in a slice of it"""
    positions = range(self.sizes[dim])[start:end:step]
    b.copy(self, out)
    if len(positions):
        convert(b, src, out.sliced(dim, positions.start, len(positions), step))


@TABLE.op("select_scatter")
def select_scatter(
    b: ProgramBuilder, out: TensorView, self: TensorView, src: TensorView, dim: int, index: int
) -> None:
    """self with src in one position of a dimension"""
    b.copy(self, out)
    convert(b, src, out.selected(dim, index % self.sizes[dim]))


@TABLE.op("constant_pad_nd")
def constant_pad(
    b: ProgramBuilder, out: TensorView, self: TensorView, pad: tuple[int, ...], value: Scalar = 0
) -> None:
    """self with `pad` elements before and after each dimension, the last first; negative crops"""
    padded(b, self, out, pad, value)


def padded(
    b: ProgramBuilder, x: TensorView, out: TensorView, pad: Sequence[int], value: Scalar
) -> None:
    """out = x within a border of `value`."""
    target = out
    for number, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.rank - 1 - number
        count = x.sizes[dim] - max(-before, 0) - max(-after, 0)
        x = x.sliced(dim, max(-before, 0), count)
        target = target.sliced(dim, max(before, 0), count)
    if any(width > 0 for width in pad):
        b.fill(out, value)
    b.copy(x, target)


# ---------------------------------------------------------------------- fills
@TABLE.op("fill.Scalar", "fill_.Scalar")
def fill(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    value: Scalar,
) -> None:
    """The number everywhere"""
    b.fill(out, value)


@TABLE.op("fill.Tensor", "fill_.Tensor")
def fill_tensor(b: ProgramBuilder, out: TensorView, self: TensorView, value: TensorView) -> None:
    """The element everywhere"""
    convert(b, value, out)


@TABLE.op("full")
def full(
    b: ProgramBuilder,
    out: TensorView,
    size: tuple[int, ...],
    fill_value: Scalar,
    **options: Option,
) -> None:
    """The number everywhere"""
    b.fill(out, fill_value)


@TABLE.op("full_like")
def full_like(
    b: ProgramBuilder, out: TensorView, self: TensorView, fill_value: Scalar, **options: Option
) -> None:
    """The number everywhere"""
    b.fill(out, fill_value)


@TABLE.op("new_full")
def new_full(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    size: tuple[int, ...],
    fill_value: Scalar,
    **options: Option,
) -> None:
    """The number everywhere"""
    b.fill(out, fill_value)


@TABLE.op("scalar_tensor")
def scalar_tensor(b: ProgramBuilder, out: TensorView, s: Scalar, **options: Option) -> None:
    """One number"""
    b.fill(out, s)


def _constant(value: int) -> tuple[RuleFunction, RuleFunction, RuleFunction]:
    """The lowerings of zeros or ones: by size, like a tensor, of a tensor's type."""

    def by_size(
        b: ProgramBuilder, out: TensorView, size: tuple[int, ...], **options: Option
    ) -> None:
        b.fill(out, value)

    def like(b: ProgramBuilder, out: TensorView, self: TensorView, **options: Option) -> None:
        b.fill(out, value)

    def new(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        size: tuple[int, ...],
        **options: Option,
    ) -> None:
        b.fill(out, value)

    return by_size, like, new


for _name, _value in (("zeros", 0), ("ones", 1)):
    _by_size, _like, _new = _constant(_value)
    TABLE.op(_name)(_by_size)
    TABLE.op(f"{_name}_like")(_like)
    TABLE.op(f"new_{_name}")(_new)
TABLE.op("zero_")(_constant(0)[1])


# ---------------------------------------------------------------------- ranges and triangles
def _range(b: ProgramBuilder, out: TensorView, start: Scalar, step: Scalar) -> None:
    """out[i] = start + step·i"""
    if is_float(out):
        b.vector("float_range", (), out, float(start), float(step))
    elif is_long(out) and not _is_short_range(int(start), int(step), out.count):
        long.arrange(b, out, int(start), int(step))
    else:
        b.vector("int_range", (), out, int(start), int(step))


def _is_short_range(start: int, step: int, count: int) -> bool:
    """Whether all numbers, and the step, are 32-bit words."""
    return all(INT32_MIN <= number <= INT32_MAX for number in (start, step, start + step * count))


@TABLE.op("arange")
def arange(b: ProgramBuilder, out: TensorView, end: Scalar, **options: Option) -> None:
    """0, 1, … below end"""
    _range(b, out, 0, 1)


@TABLE.op("arange.start", "arange.start_step")
def arange_from(
    b: ProgramBuilder,
    out: TensorView,
    start: Scalar,
    end: Scalar,
    step: Scalar = 1,
    **options: Option,
) -> None:
    """start, start + step, … before end"""
    _range(b, out, start, step)


def _triangle(program: str) -> RuleFunction:
    def rule(b: ProgramBuilder, out: TensorView, self: TensorView, diagonal: int = 0) -> None:
        limits = b.temp(DType.INT32, (self.sizes[-2], 1))
        b.vector("int_range", (), limits.transposed(), diagonal, 1)
        parts = [(self, out)]
        if is_long(out):
            parts = [(part(self), part(out)) for part in (low_words, high_words)]
        for source, target in parts:
            b.vector(program, (source, limits), target)

    return rule


for _name in ("tril", "triu"):
    TABLE.op(_name, f"{_name}_")(_triangle(_name))
