# SPDX-License-Identifier: Apache-2.0
"""Ops of one element: correctly rounded ones, and functions with a budget in ULP.

A correctly rounded fp32 result of float64's: float64 holds products and, rounded, quotients, roots
and sums closely enough that rounding again gives the fp32 rounding of the exact value (a format of
2p + 2 bits or more does: S. A. Figueroa, When is double rounding innocuous?, 1995); only with
alpha, where the exact sum of a product and a number is wider, SLACK is added.

A function's budget is `ulps` · ulp(t) before the rounding to the result's type, where t is the
true value; docs/numerics.md's accuracy table holds the measured maxima, which stay below.

torch computes 16-bit types in fp32 as well, but rounds a Python number to the result's type first;
that is a relative change of u16 of the number, and part of torch's bound alone. Nothing is claimed
of torch where it loses what the NPU keeps: e^|x| beyond EXP_LIMIT in silu, sinh and cosh,
2x in gelu. Its erf of 16-bit types is 1 minus an approximation: off by some ULP of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from golden.bounds.budgets import CORRECT, SHORT, ULPS
from golden.bounds.exact import by_type
from golden.bounds.expectation import (
    FLUSH,
    LARGEST,
    SLACK,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    is_short,
    near,
    torch_open,
    ulp,
    unclaimed,
    unit,
)
from golden.bounds.promotion import promoted
from golden.bounds.remainders import floored
from golden.calls import OpCall, truths, widened
from golden.formats import Floats, Mask, Values
from golden.tensors import values_of


def true_of(subject: Subject, output: int = 0) -> Floats:
    """The true value of an output by the same op in float64."""
    result = truths(subject.call)[output]
    assert result is not None
    return values_of(result).astype(np.float64)


def magnitude(value: object, shape: tuple[int, ...]) -> Floats:
    """|operand| as float64, broadcast to the result; not finite counts as 0."""
    wide = widened(value)
    array = np.abs(values_of(wide) if isinstance(wide, torch.Tensor) else np.float64(wide))
    finite = np.where(np.isfinite(array), array, 0.0)
    return np.broadcast_to(finite.astype(np.float64), shape)


def _cast(value: object, dtype: torch.dtype) -> float:
    """By which fraction torch may change a number when it converts it to the result's type."""
    return unit(dtype) if is_short(dtype) and not isinstance(value, torch.Tensor) else 0.0


def sum_rule(subject: Subject) -> tuple[Expectation | None, ...]:
    """self ± alpha·other: one rounding; torch may round alpha·other first."""
    call, dtype = subject.call, subject.answer().dtype
    true = true_of(subject)
    left = magnitude(call["self"], true.shape)
    alpha = abs(float(call.arguments.get("alpha", 1)))
    right = alpha * magnitude(call["other"], true.shape)
    npu = (SLACK if alpha != 1 else 0.0) * (left + right)
    other = npu + left * _cast(call["self"], dtype) + right * _cast(call["other"], dtype)
    first: Floats | float = 0.0
    if alpha != 1:
        other = other + 2 * (unit(dtype) if is_short(dtype) else U) * (left + right)
        first = right if is_short(dtype) else 0.0
    return (near(dtype, true, npu, other, torch_peak=first, signed_zeros=True),)


def product_rule(subject: Subject) -> tuple[Expectation | None, ...]:
    """self·other or self ÷ other: one rounding; torch may divide by multiplying.

    A quotient rounded to a whole number is another matter.
    """
    call, dtype = subject.call, subject.answer().dtype
    if call.arguments.get("rounding_mode") is not None:
        return floored(subject)
    true = true_of(subject)
    size = np.abs(np.where(np.isfinite(true), true, 0.0))
    casts = sum(_cast(call[name], dtype) for name in ("self", "other"))
    return (near(dtype, true, 0.0, size * (casts + 2 * U) + TINY, signed_zeros=True),)


def function(
    name: str,
    torch_ulps: float,
    *,
    true: Callable[[OpCall], torch.Tensor] | None = None,
    torch_scale: Callable[[OpCall], torch.Tensor] | None = None,
) -> Rule:
    """A function within the budget of its name, and torch's within `torch_ulps`.

    `true`: a formula that float64 evaluates closely where torch's own does not. `torch_scale`: a
    magnitude whose ULP count for torch, where its formula cancels; of its infinities nothing is
    claimed, since the vectorised formulas of torch make ∞ · 0 of them.
    """

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        call, dtype = subject.call, subject.answer().dtype
        exact = true_of(subject) if true is None else values_of(true(call))
        spacing = ulp(exact)
        special = np.zeros(exact.shape, np.bool_)
        npu = np.zeros_like(exact) if ULPS[name] == CORRECT else ULPS[name] * spacing
        size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
        npu = np.maximum(npu, SHORT.get(name, {}).get(dtype, 0.0) * size)
        if torch_scale is not None:
            scale = values_of(torch_scale(call))
            spacing, special = np.maximum(spacing, ulp(scale)), ~np.isfinite(scale)
        other = torch_ulps * spacing + 2 * FLUSH
        if is_short(dtype):
            other = other + unit(dtype) * size
        made = near(dtype, exact, npu, other, signed_zeros=name not in _UNSIGNED)
        return (torch_open(made, special),)

    return rule


def _gelu(call: OpCall) -> torch.Tensor:
    """x·Φ(x) by erfc, which has no cancellation; the tanh formula as x·sigmoid."""
    x: torch.Tensor = call["self"].double()
    if call["approximate"] == "tanh":
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
        value = x * torch.sigmoid(2 * inner)
    else:
        value = 0.5 * x * torch.special.erfc(-x * 0.5**0.5)
    (own,) = truths(call)
    assert own is not None
    return torch.where(x.isinf(), own, value)


def _size(call: OpCall) -> torch.Tensor:
    """Of gelu: torch doubles x on the way."""
    return _lost(_operand(call), LARGEST / 2)


def _exponential(call: OpCall) -> torch.Tensor:
    """Of silu, sinh and cosh: torch's e^|x| is infinite although the result is not."""
    return _lost(0 * _operand(call), EXP_LIMIT, _operand(call))


def _one(call: OpCall) -> torch.Tensor:
    """Of erf in 16 bits, where torch approximates 1 − erf."""
    x = _operand(call)
    return torch.ones_like(x) if is_short(call["self"].dtype) else 0 * x


def _lost(scale: torch.Tensor, limit: float, x: torch.Tensor | None = None) -> torch.Tensor:
    """`scale`, infinite where |x| is at `limit` or beyond; x is `scale` itself by default."""
    return torch.where((scale if x is None else x).abs() >= limit, torch.inf, scale)


def _operand(call: OpCall) -> torch.Tensor:
    return torch.as_tensor(widened(call["self"])).double()


_UNSIGNED = ("pow",)
"""Functions whose zeros have no sign: √−0 is −0, and what −0 to the power ½ is depends on torch's
type."""
EXP_LIMIT = 88.0
"""From here on e^x of torch's vectors may be infinite."""
DOMAIN = 2.0**16 * np.pi
"""Up to here sin and cos are accurate (docs/numerics.md)."""


def periodic(name: str, torch_ulps: float) -> Rule:
    """sin and cos: the budget holds within DOMAIN; beyond it the result has to lie in [−1, 1], but
    that tells right from wrong too seldom to count as compared."""
    within = function(name, torch_ulps)

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        (inside,) = within(subject)
        assert inside is not None
        beyond = magnitude(subject.call["self"], inside.true.shape) > DOMAIN

        def in_range(values: Values) -> Mask:
            return np.asarray(~beyond | (np.abs(values) <= 1))

        return (replace(inside, npu=unclaimed(inside, beyond).npu, chosen=in_range),)

    return rule


def _tangent(subject: Subject) -> tuple[Expectation | None, ...]:
    """tan: within DOMAIN; beyond it nothing is claimed."""
    (inside,) = function("tan", 3.0)(subject)
    assert inside is not None
    beyond = magnitude(subject.call["self"], inside.true.shape) > DOMAIN
    return (unclaimed(inside, beyond),)


def running(
    terms: Callable[[OpCall], torch.Tensor],
    roundings: int,
    peak: Callable[[OpCall], torch.Tensor] | None = None,
) -> Rule:
    """A short expression: `roundings` roundings, each of at most `terms` in magnitude. `peak`: the
    largest magnitude on the way, where that is another."""

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        dtype = subject.answer().dtype
        true = true_of(subject)
        size = np.broadcast_to(values_of(terms(subject.call)), true.shape)
        size = np.where(np.isfinite(size), size, 0.0)
        error = roundings * (U * size + TINY) * (1 + roundings * U) + SLACK * size
        other = error + (2 * unit(dtype) * size if is_short(dtype) else 0.0)
        largest = size if peak is None else values_of(peak(subject.call))
        return (near(dtype, true, error, other, peak=np.broadcast_to(largest, true.shape)),)

    return rule


def _arange(subject: Subject) -> tuple[Expectation | None, ...]:
    """start + step·i with both rounded to fp32: 3 roundings of either term, none of whole numbers
    that fp32 holds.

    As many elements as torch makes: in float64 the op itself may count one more or less. torch
    rounds the first of each vector to a 16-bit type, then the sum.
    """
    dtype = subject.answer().dtype
    index = np.arange(subject.answer().numel(), dtype=np.float64)
    arguments = subject.call.arguments
    start, step = (float(arguments.get(*pair)) for pair in (("start", 0), ("step", 1)))
    true, size = start + step * index, abs(start) + abs(step) * index
    whole = all(number == int(number) for number in (start, step)) and size.max(initial=0) < 1 / U
    error = 0 * size if whole else 3 * U * size
    return (near(dtype, true, error, error + 2 * unit(dtype) * size * is_short(dtype)),)


def _functions(torch_ulps: float, *names: str) -> dict[str, Rule]:
    return {name: function(name, torch_ulps) for name in names}


RULES: dict[str, Rule] = {
    "arange": by_type(_arange),
    **dict.fromkeys(("add", "sub", "rsub"), by_type(promoted(sum_rule))),
    **dict.fromkeys(("mul", "div"), by_type(promoted(product_rule, wide_factor=True))),
    "square": by_type(function("square", 1.0)),
    "pow": by_type(promoted(function("pow", 3.0))),
    "gelu": function("gelu", 6.0, true=_gelu, torch_scale=_size),
    **{name: periodic(name, 3.0) for name in ("sin", "cos")},
    "tan": _tangent,
    "atan2": promoted(function("atan2", 3.0)),
    **_functions(3.0, "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    **{name: function(name, 3.0, torch_scale=_exponential) for name in ("sinh", "cosh")},
    **_functions(1.0, "sqrt"),
    **_functions(2.0, "reciprocal"),
    **_functions(3.0, "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    **_functions(3.0, "tanh"),
    "erf": function("erf", 3.0, torch_scale=_one),
    **_functions(4.0, "sigmoid"),
    "silu": function("silu", 5.0, torch_scale=_exponential),
}
