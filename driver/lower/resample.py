# SPDX-License-Identifier: Apache-2.0
"""Upsampling: each dimension of the result takes positions of the input, or weighted sums of them.

Positions and weights follow from the sizes alone, so they are constants; one dimension is resampled
after the other, the last first. Nearest positions are computed in fp32, as torch computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor

from driver.isa import DType
from driver.lower.builder import ProgramBuilder
from driver.lower.constant_index import take_constant
from driver.lower.convert import require_floats
from driver.lower.positions import along
from driver.lower.registry import LoweringTable, RuleFunction, Scalar
from driver.lower.words import fp32
from driver.runtime.views import TensorView

TABLE = LoweringTable()


@dataclass(frozen=True)
class _Line:
    """One dimension: its lengths, and the factor that was asked for."""

    length: int
    count: int
    factor: Scalar | None

    @property
    def step(self) -> float:
        """Positions of the input per position of the result."""
        if self.factor is not None and self.factor > 0:
            return 1.0 / self.factor
        return self.length / self.count

    def nearest_planar(self) -> list[int]:
        """torch's upsample_nearest2d: where a line stays or doubles, the factor does not count."""
        if self.count in (self.length, 2 * self.length):
            return [at * self.length // self.count for at in range(self.count)]
        return self.nearest()

    def nearest(self) -> list[int]:
        """torch's upsample_nearest1d and 3d."""
        step = fp32(self.step)
        return [min(floor(fp32(at * step)), self.length - 1) for at in range(self.count)]

    def nearest_exact(self) -> list[int]:
        """The input's position whose centre is nearest."""
        step = fp32(self.step)
        return [min(floor(fp32((at + 0.5) * step)), self.length - 1) for at in range(self.count)]

    def places(self, align_corners: bool) -> list[float]:
        """Where each position of the result lies on the input's line."""
        if align_corners:
            step = (self.length - 1) / (self.count - 1) if self.count > 1 else 0.0
            return [step * at for at in range(self.count)]
        return [self.step * (at + 0.5) - 0.5 for at in range(self.count)]


Positions = Callable[[_Line], list[int]]
Tap = tuple[list[int], list[float]]
"""Positions and weights of one term, for every position of the result."""


def _linear(line: _Line, align_corners: bool) -> list[Tap]:
    if line.count == line.length:  # torch copies, whatever the factor
        return [(list(range(line.count)), [1.0] * line.count)]
    last = line.length - 1
    places = [max(at, 0.0) for at in line.places(align_corners)]
    low = [min(floor(at), last) for at in places]
    share = [min(at - start, 1.0) for at, start in zip(places, low, strict=True)]
    high = [min(start + 1, last) for start in low]
    return [(low, [1.0 - part for part in share]), (high, share)]


def _cubic(line: _Line, align_corners: bool) -> list[Tap]:
    """Keys' convolution with a = −0.75, positions beyond the ends taken at the end."""
    places = line.places(align_corners)
    starts = [floor(at) for at in places]
    shares = [at - start for at, start in zip(places, starts, strict=True)]
    return [
        (
            [min(max(start + offset, 0), line.length - 1) for start in starts],
            [_keys(abs(share - offset)) for share in shares],
        )
        for offset in (-1, 0, 1, 2)
    ]


def _keys(x: float, a: float = -0.75) -> float:
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def _summed(
    b: ProgramBuilder, x: TensorView, out: TensorView, dim: int, taps: Sequence[Tap]
) -> None:
    """out = Σ weight·x[position] along a dimension; taps of weight 0 everywhere are left out."""
    needed = [tap for tap in taps if any(tap[1])]
    total: TensorView | None = None
    for number, (positions, weights) in enumerate(needed):
        last = number == len(needed) - 1
        target = out if last else (total or b.temp(DType.FP32, out.sizes))
        weight = along(b.table(DType.FP32, weights), x.rank, dim % x.rank)
        term = take_constant(b, x, dim, positions)
        if total is None:
            b.vector("mul", (term, weight), target)
        else:
            b.vector("mul_add", (term, weight, total), target)
        total = target


def _lines(x: TensorView, out: TensorView, factors: Sequence[Scalar | None]) -> list[_Line]:
    rank = len(factors)
    return [
        _Line(length, count, factor)
        for length, count, factor in zip(x.sizes[-rank:], out.sizes[-rank:], factors, strict=True)
    ]


def _enlarged(b: ProgramBuilder, x: TensorView, out: TensorView, lines: Sequence[_Line]) -> bool:
    """One copy of repeated elements, where every dimension grows by a whole factor."""
    if any(line.count % line.length or line.factor not in _whole(line) for line in lines):
        return False
    target = out
    for number, line in enumerate(reversed(lines)):
        dim = x.rank - 1 - number
        target = target.split(dim, (line.length, line.count // line.length))
    for number in range(len(lines)):
        x = x.inserted(x.rank - 2 * number)
    b.copy(b.expanded(x, target.sizes), target)
    return True


def _whole(line: _Line) -> tuple[Scalar | None, ...]:
    return (None, line.count / line.length)


def _nearest(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    positions: Positions,
    factors: Sequence[Scalar | None],
) -> None:
    """out = x at the nearest positions."""
    lines = _lines(x, out, factors)
    if _enlarged(b, x, out, lines):
        return
    for number, line in enumerate(reversed(lines)):
        target = out if number == len(lines) - 1 else None
        x = take_constant(b, x, out.rank - 1 - number, positions(line), target)


def _weighted(
    b: ProgramBuilder,
    out: TensorView,
    x: TensorView,
    taps_of: Callable[[_Line, bool], list[Tap]],
    align_corners: bool,
    factors: Sequence[Scalar | None],
) -> None:
    """out = weighted sums of x, one dimension after the other."""
    require_floats(b, x)
    for number, line in enumerate(reversed(_lines(x, out, factors))):
        dim = x.rank - 1 - number
        sizes = (*x.sizes[:dim], line.count, *x.sizes[dim + 1 :])
        target = out if number == len(factors) - 1 else b.temp(DType.FP32, sizes)
        _summed(b, x, target, dim, taps_of(line, align_corners))
        x = target


def _declare_nearest(name: str, positions: Positions, planar: Positions) -> None:
    """The three rows of one way to choose positions."""

    @TABLE.op(f"{name}1d")
    def one(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        output_size: tuple[int, ...],
        scales: Scalar | None = None,
    ) -> None:
        _nearest(b, out, self, positions, (scales,))

    @TABLE.op(f"{name}2d")
    def two(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        output_size: tuple[int, ...],
        scales_h: Scalar | None = None,
        scales_w: Scalar | None = None,
    ) -> None:
        _nearest(b, out, self, planar, (scales_h, scales_w))

    @TABLE.op(f"{name}3d")
    def three(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        output_size: tuple[int, ...],
        scales_d: Scalar | None = None,
        scales_h: Scalar | None = None,
        scales_w: Scalar | None = None,
    ) -> None:
        _nearest(b, out, self, positions, (scales_d, scales_h, scales_w))


_declare_nearest("upsample_nearest", _Line.nearest, _Line.nearest_planar)
_declare_nearest("_upsample_nearest_exact", _Line.nearest_exact, _Line.nearest_exact)


@TABLE.op("upsample_linear1d")
def linear(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    output_size: tuple[int, ...],
    align_corners: bool,
    scales: Scalar | None = None,
) -> None:
    """Between the two nearest elements"""
    _weighted(b, out, self, _linear, align_corners, (scales,))


@TABLE.op("upsample_trilinear3d")
def trilinear(
    b: ProgramBuilder,
    out: TensorView,
    self: TensorView,
    output_size: tuple[int, ...],
    align_corners: bool,
    scales_d: Scalar | None = None,
    scales_h: Scalar | None = None,
    scales_w: Scalar | None = None,
) -> None:
    """The same in three dimensions"""
    _weighted(b, out, self, _linear, align_corners, (scales_d, scales_h, scales_w))


def _planar(taps_of: Callable[[_Line, bool], list[Tap]]) -> RuleFunction:
    def rule(
        b: ProgramBuilder,
        out: TensorView,
        self: TensorView,
        output_size: tuple[int, ...],
        align_corners: bool,
        scales_h: Scalar | None = None,
        scales_w: Scalar | None = None,
    ) -> None:
        _weighted(b, out, self, taps_of, align_corners, (scales_h, scales_w))

    return rule


TABLE.op("upsample_bilinear2d")(_planar(_linear))
TABLE.op("upsample_bicubic2d")(_planar(_cubic))
