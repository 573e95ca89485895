# SPDX-License-Identifier: Apache-2.0
"""Remainders, and quotients rounded to whole numbers.

The remainder towards zero of two numbers of a format is a number of that format (it is a multiple
of the divisor's last bit and smaller than the divisor), so it is required exactly; C's fmod in
float64 gives it. The remainder towards −∞ adds the divisor, one rounding. A floored quotient is
torch's: both sides round (x − remainder) ÷ y. torch's vectorised fmod gives NaN where x ÷ y is
beyond the largest fp32 number: nothing is claimed about torch there, nor about a quotient.
"""

from __future__ import annotations

import numpy as np
import torch

from golden.bounds.exact import by_type
from golden.bounds.expectation import (
    LARGEST,
    Expectation,
    Subject,
    U,
    exact,
    is_short,
    near,
    torch_open,
    unclaimed,
    unit,
)
from golden.bounds.promotion import promoted
from golden.formats import Floats, Mask
from golden.tensors import values_of

_CERTAIN = 2.0**12


def _operands(subject: Subject) -> tuple[Floats, Floats]:
    """self and other in the result's type, as float64 of the result's sizes."""
    answer = subject.answer()
    found = []
    for name in ("self", "other"):
        value = subject.call[name]
        tensor = torch.as_tensor(value).to(answer.dtype)
        wide = values_of(tensor).astype(np.float64)
        found.append(np.broadcast_to(wide, tuple(answer.shape)))
    return found[0], found[1]


def _beyond(x: Floats, y: Floats) -> Mask:
    """Where the quotient is finite, and no fp32 number."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray((np.abs(x / y) > LARGEST) & np.isfinite(x) & (y != 0))


def _fmod(subject: Subject) -> tuple[Expectation | None, ...]:
    x, y = _operands(subject)
    true = np.fmod(x, y)
    return (torch_open(near(subject.answer().dtype, true, 0.0), _beyond(x, y)),)


def _remainder(subject: Subject) -> tuple[Expectation | None, ...]:
    x, y = _operands(subject)
    true = np.fmod(x, y)
    true = np.where((true != 0) & (np.signbit(true) != np.signbit(y)), true + y, true)
    return (torch_open(near(subject.answer().dtype, true, 0.0), _beyond(x, y)),)


def floored(subject: Subject) -> tuple[Expectation | None, ...]:
    """A quotient rounded to a whole number: torch's for fp32 and integers.

    torch may round a 16-bit quotient to its type first, so that it is one off: the true one there.
    """
    answer = exact(subject.answer(), signed_zeros=True)
    if not subject.answer().is_floating_point():
        return (answer,)
    other, dividend = subject.call["other"], subject.call["self"]
    if is_short(subject.answer().dtype) and _is_wide(dividend, other):
        return (_by_number(subject, dividend, other),)
    x, y = _operands(subject)
    if is_short(subject.answer().dtype):
        answer = _short_floored(subject, x, y)
    return (unclaimed(answer, _beyond(x, y)),)


def _is_wide(dividend: object, divisor: object) -> bool:
    """Whether the divisor stays fp32 beside 16-bit numbers: a number, or a tensor without
    dimensions beside one with some."""
    if not isinstance(divisor, torch.Tensor):
        return True
    ranked = isinstance(dividend, torch.Tensor) and dividend.dim() > 0
    return ranked and divisor.dim() == 0


def _by_number(subject: Subject, dividend: object, divisor: object) -> Expectation:
    """The quotient of fp32, which is exact to the last bit, rounded once more."""
    mode = subject.call.arguments.get("rounding_mode", "floor")
    left, right = (torch.as_tensor(x).to(torch.float32) for x in (dividend, divisor))
    true = values_of(torch.div(left, right, rounding_mode=mode)).astype(np.float64)
    made = near(subject.answer().dtype, true, 0.0)
    return unclaimed(made, _beyond(*(values_of(x).astype(np.float64) for x in (left, right))))


def _short_floored(subject: Subject, x: Floats, y: Floats) -> Expectation:
    """Of numbers of at most 11 bits: a quotient below 2¹² that is no whole number is 2⁻²³ of itself
    away from one, so its rounding to fp32 does not make it one; above, it may."""
    dtype = subject.answer().dtype
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = x / y
    whole = np.trunc if subject.call.arguments.get("rounding_mode") == "trunc" else np.floor
    known = np.isfinite(quotient) & np.isfinite(y)  # by ∞ torch gives −1 below 0
    true = np.where(known, whole(quotient), values_of(subject.answer()).astype(np.float64))
    size = np.where(known, np.abs(quotient), 0.0)
    npu = np.where(size < _CERTAIN, 0.0, 1.0 + U * size)
    return near(dtype, true, npu, npu + np.where(known, 1.0 + 2 * unit(dtype) * size, 0.0))


RULES = {
    "fmod": by_type(_fmod),
    "remainder": by_type(_remainder),
    "floor_divide": promoted(floored, wide_factor=True),
}
