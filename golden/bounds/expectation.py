# SPDX-License-Identifier: Apache-2.0
"""What is admissible for one output of an op, and how bounds on an error become that.

The NPU computes in fp32 and rounds once more to a 16-bit result; both roundings are monotonic, so
a value within [t − e, t + e] before them ends within [round(t − e), round(t + e)]: that interval
is the test, exact at ties, in subnormals and at overflow. Infinite and NaN truths are required
as they are. The sign of a zero is compared where bits are moved, and where a function of one
element or a product, quotient or sum of two defines it.

Where a sum on the way may exceed the largest fp32 number in one order and not in another, nothing
is claimed: `unbounded`. Where all terms have the result's sign, nothing on the way is larger than
it. Truths come from float64, whose own error a rule adds where it is not negligible (2^-53 relative
per operation, SLACK for a few).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from driver.isa import DType
from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.specified import SpecifiedBits
from golden.calls import OpCall, Result
from golden.formats import FLOAT_FORMATS, Floats, Mask, Values, round_to
from golden.tensors import values_of

U = FLOAT_FORMATS[DType.FP32].unit_roundoff
"""Unit roundoff of fp32: one rounding changes a normal number by at most this fraction."""
TINY = 2.0**-149
"""The least fp32 subnormal: what a rounding below the normal range may add, twice over."""
SLACK = 2.0**-50
"""Relative error of a few float64 operations."""
FLUSH = 2.0**-126
"""Smallest normal fp32 number: torch's 16-bit kernels may take anything below for 0."""
LARGEST = FLOAT_FORMATS[DType.FP32].max_finite
"""Largest finite fp32 number."""


@dataclass(frozen=True)
class Interval:
    """What is admissible per element: low ≤ value ≤ high, or NaN, or (unbounded) anything."""

    low: Values
    high: Values
    nan: Mask
    unbounded: Mask

    def admits(self, values: Values) -> Mask:
        """Which elements lie inside."""
        inside = (values >= self.low) & (values <= self.high)
        return np.where(self.nan, np.isnan(values), inside) | self.unbounded

    @property
    def not_compared(self) -> Mask:
        """The elements of which anything would be admissible."""
        return self.unbounded | (np.isneginf(self.low) & np.isposinf(self.high))

    def reshaped(self, sizes: tuple[int, ...]) -> Interval:
        """The same elements in another shape."""
        sides = (self.low, self.high, self.nan, self.unbounded)
        return Interval(*(side.reshape(sizes) for side in sides))


Admits = Callable[[Values], Mask]
"""Which elements of a whole result are right."""


def same_zeros(values: Values, wanted: Values) -> Mask:
    """Whether each element has the sign that is wanted of it, where both are zero."""
    both = (values == 0) & (wanted == 0)
    return np.asarray(~both | (np.signbit(values) == np.signbit(wanted)))


@dataclass(frozen=True)
class Expectation:
    """What is admissible per element of one output."""

    true: Values
    npu: Interval
    torch: Interval
    signed_zeros: bool = False
    """−0 and +0 are different: the op moves bits."""
    chosen: Admits | None = None
    """What else has to hold of the NPU's, where an interval per element cannot say it."""
    specified: SpecifiedBits | None = None
    """The bits of the NPU's elements, where the contract says them."""

    def admits_npu(self, values: Values) -> Mask:
        """Which of the NPU's elements are right."""
        inside = self._admits(self.npu, values)
        if self.specified is not None:
            inside = inside & self.specified.admits(values)
        return inside if self.chosen is None else inside & self.chosen(values)

    def admits_torch(self, values: Values) -> Mask:
        """Which of torch's elements are as assumed."""
        return self._admits(self.torch, values)

    def _admits(self, interval: Interval, values: Values) -> Mask:
        inside = interval.admits(values)
        if self.signed_zeros and values.dtype == np.float64:
            inside &= same_zeros(values, self.true) | interval.unbounded
        return np.asarray(inside)

    def reshaped(self, sizes: tuple[int, ...]) -> Expectation:
        """The same elements in another shape."""
        npu, torch = self.npu.reshaped(sizes), self.torch.reshaped(sizes)
        inner, own = self.chosen, self.true.shape

        def chosen(values: Values) -> Mask:
            assert inner is not None
            return inner(values.reshape(own)).reshape(sizes)

        admits = None if inner is None else chosen
        true = self.true.reshape(sizes)
        return Expectation(true, npu, torch, self.signed_zeros, admits, self.specified)


@dataclass(frozen=True)
class Subject:
    """A call with torch's answers: what a rule looks at."""

    call: OpCall
    answers: tuple[Result, ...]

    def answer(self, output: int = 0) -> torch.Tensor:
        """An output that is a tensor."""
        found = self.answers[output]
        assert found is not None
        return found


_ALIKE = 2.0**-30
"""By which fraction two float64 sums of the same magnitudes may differ; so small a part of them may
have the other sign."""
_MOST = 0.5
"""Roundings times unit roundoff, up to which the error is a small multiple of their product."""

Rule = Callable[[Subject], tuple[Expectation | None, ...]]
"""One Expectation per output; None where an output is no tensor."""


def gamma(n: int, u: float = U) -> float:
    """γ_n = n·u/(1 − n·u): the relative error of n roundings (Higham, Lemma 3.1). Infinite, so
    that nothing is claimed, for so many that they may lose every digit."""
    return n * u / (1 - n * u) if n * u < _MOST else math.inf


def ulp(values: Floats, dtype: DType = DType.FP32) -> Floats:
    """The spacing of a format's numbers at each value; that of its least numbers at 0, and where
    there is no number."""
    form = FLOAT_FORMATS[dtype]
    number = np.isfinite(values) & (values != 0)
    _, exponent = np.frexp(np.where(number, values, 1.0))
    quantum = np.where(number, exponent - form.precision, form.min_quantum)
    spacing: Floats = np.ldexp(1.0, np.maximum(quantum, form.min_quantum))
    return spacing


def unit(dtype: torch.dtype) -> float:
    """Unit roundoff of a floating-point type."""
    return FLOAT_FORMATS[NPU_TYPES[dtype]].unit_roundoff


def least(dtype: torch.dtype) -> float:
    """The smallest number of a floating-point type, a subnormal."""
    return float(2.0 ** FLOAT_FORMATS[NPU_TYPES[dtype]].min_quantum)


def is_short(dtype: torch.dtype) -> bool:
    """A 16-bit floating-point type."""
    return dtype in (torch.float16, torch.bfloat16)


def exact(result: torch.Tensor, *, signed_zeros: bool = False) -> Expectation:
    """Exactly torch's answer; any NaN for a NaN."""
    values = values_of(result)
    nan = np.isnan(values) if values.dtype == np.float64 else np.zeros(values.shape, np.bool_)
    interval = Interval(values, values, nan, np.zeros(values.shape, np.bool_))
    return Expectation(values, interval, interval, signed_zeros)


def unclaimed(expectation: Expectation, where: Mask) -> Expectation:
    """The same, but nothing is said about the elements of a mask."""
    npu, other = (
        Interval(side.low, side.high, side.nan & ~where, side.unbounded | where)
        for side in (expectation.npu, expectation.torch)
    )
    return replace(expectation, npu=npu, torch=other)


def torch_open(expectation: Expectation, where: Mask) -> Expectation:
    """The same, but nothing is said about torch's elements of a mask."""
    side = expectation.torch
    freed = Interval(side.low, side.high, side.nan & ~where, side.unbounded | where)
    return replace(expectation, torch=freed)


def near(
    dtype: torch.dtype,
    true: Floats,
    npu_error: Floats | float,
    torch_error: Floats | float | None = None,
    *,
    peak: Floats | float = 0.0,
    torch_peak: Floats | float = 0.0,
    signed_zeros: bool = False,
) -> Expectation:
    """Within these distances of `true` before the result is rounded to `dtype`.

    `torch_error`: by default the NPU's. `peak`: the largest magnitude on the way, in fp32, 0 where
    there is none; `torch_peak`: likewise of what torch rounds to `dtype` on the way.
    """
    result = NPU_TYPES[dtype]
    torch_error = npu_error if torch_error is None else torch_error
    number = ~np.isnan(true)
    way = np.asarray(peak)
    reach = way + np.asarray(npu_error)
    alike = np.isfinite(true) & (way <= np.abs(true) * (1 + _ALIKE)) & (way * _ALIKE < LARGEST)
    over = number & (way > 0) & ~alike & (reach >= LARGEST)
    limit = FLOAT_FORMATS[result].max_finite
    torch_over = over | (number & (np.asarray(torch_peak) * (1 + SLACK) >= limit))
    return Expectation(
        true,
        _around(true, npu_error, result, over),
        _around(true, torch_error, result, torch_over),
        signed_zeros,
    )


def _around(true: Floats, error: Floats | float, result: DType, unbounded: Mask) -> Interval:
    finite = np.isfinite(true)
    error = np.where(finite, np.nan_to_num(np.asarray(error), nan=np.inf, posinf=np.inf), 0.0)
    with np.errstate(invalid="ignore"):
        ends = (true - error, true + error)
        low, high = (round_to(round_to(end, DType.FP32), result) for end in ends)
    nan = np.isnan(true)
    return Interval(
        np.where(nan, 0.0, low), np.where(nan, 0.0, high), nan, unbounded | np.isinf(error)
    )
