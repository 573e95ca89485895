# SPDX-License-Identifier: Apache-2.0
"""Random ops: numbers of docs/numerics.md from the words of the op's stream."""

from __future__ import annotations

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.convert import constant, require_floats
from driver.lower.philox import shaped, words, words_like
from driver.lower.registry import LoweringTable
from driver.lower.shape import Option
from driver.lower.words import below, fp32
from driver.runtime.views import TensorView

TABLE = LoweringTable()

_UNIT_SHIFT = {DType.FP32: 8, DType.FP16: 21, DType.BF16: 24}
"""32 less the bits of a unit."""


# ---------------------------------------------------------------------- uniform
def _uniform(b: ProgramBuilder, out: TensorView, start: float, end: float) -> None:
    require_floats(b, out)
    low, high = fp32(start), fp32(end)
    last = max(below(high, out.dtype), low)
    imms = (_UNIT_SHIFT[out.dtype], fp32(high - low), low, last)
    b.vector("random_uniform", (words_like(b, out),), out, *imms)


@TABLE.op("uniform_", "uniform")
def uniform(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    from_: float = 0.0,
    to: float = 1.0,
    *,
    generator: None = None,
) -> None:
    """Numbers from `from` to below `to`"""
    _uniform(b, out, from_, to)


@TABLE.op("rand", "rand.generator")
def rand(
    b: ProgramBuilder,
    out: TensorView,
    size: tuple[int, ...],
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Numbers from 0 to below 1"""
    _uniform(b, out, 0.0, 1.0)


@TABLE.op("rand_like", "rand_like.generator")
def rand_like(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """The same in self's sizes"""
    _uniform(b, out, 0.0, 1.0)


# ---------------------------------------------------------------------- normal
def _normal(
    b: ProgramBuilder, out: TensorView, mean: TensorView | float, std: TensorView | float
) -> None:
    """mean + std·z, one rounding after z."""
    require_floats(b, out)
    pairs = -(-out.count // 2)
    drawn = words(b, 2 * pairs).reshaped((pairs, 2), (2, 1))
    sources = [b.expanded(drawn.sliced(1, at, 1), (pairs, 2)) for at in range(2)]
    z = b.temp(DType.FP32, (pairs, 2))
    b.vector("random_normal", sources, z)
    source = shaped(z.reshaped((out.count,), (1,)), out)
    if isinstance(mean, TensorView) or isinstance(std, TensorView):
        b.vector("mul_add", (source, _tensor(b, std), _tensor(b, mean)), out)
    else:
        b.vector("affine", (source,), out, float(std), float(mean))


def _tensor(b: ProgramBuilder, value: TensorView | float) -> TensorView:
    return value if isinstance(value, TensorView) else constant(b, value, DType.FP32)


@TABLE.op("normal_", "normal_functional")
def normal(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    generator: None = None,
) -> None:
    """Normal numbers"""
    _normal(b, out, mean, std)


@TABLE.op("normal.Tensor_float")
def normal_tensor_float(
    b: ProgramBuilder,
    out: TensorView,
    mean: TensorView,
    std: float = 1.0,
    *,
    generator: None = None,
) -> None:
    """Normal numbers, a mean for each"""
    _normal(b, out, mean, std)


@TABLE.op("normal.float_Tensor", "normal.Tensor_Tensor")
def normal_tensors(
    b: ProgramBuilder,
    out: TensorView,
    mean: TensorView | float,
    std: TensorView,
    *,
    generator: None = None,
) -> None:
    """Normal numbers, a deviation for each"""
    _normal(b, out, mean, std)


@TABLE.op("normal.float_float")
def normal_sized(
    b: ProgramBuilder,
    out: TensorView,
    mean: float,
    std: float,
    size: tuple[int, ...],
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Normal numbers of a given size"""
    _normal(b, out, mean, std)


@TABLE.op("randn", "randn.generator")
def randn(
    b: ProgramBuilder,
    out: TensorView,
    size: tuple[int, ...],
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """Normal numbers, mean 0, deviation 1"""
    _normal(b, out, 0.0, 1.0)


@TABLE.op("randn_like", "randn_like.generator")
def randn_like(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    *,
    generator: None = None,
    **options: Option,
) -> None:
    """The same in self's sizes"""
    _normal(b, out, 0.0, 1.0)


@TABLE.op("exponential_", "exponential")
def exponential(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    lambd: float = 1.0,
    *,
    generator: None = None,
) -> None:
    """−log O ÷ lambd"""
    require_floats(b, out)
    b.vector("random_exponential", (words_like(b, out),), out, float(lambd))
