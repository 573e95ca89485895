# SPDX-License-Identifier: Apache-2.0
"""Gradients of normalisations; the statistics m and r are exact operands.

With n = (x − m)·r, h = g (batch) or g·weight (layer, group), over the K elements of a row:

    grad_input = (h − n·Σ(h·n)/K − Σh/K)·s, s = r·weight or r

n has two roundings, h one, their product another, the sum as many as golden.bounds.reductions
says, /K and the product with n one each: the middle term is within γ_{n+8}·|n|·Σ|h·n|/K, the last
one within γ_{n+2}·Σ|h|/K. h and the three steps that follow: 6u of the terms' magnitudes T = |h| +
|n|·|Σ(h·n)|/K + |Σh|/K; that covers s, too.
grad_weight = Σ g·n: γ_{n+4}·Σ|g·n|, grad_bias: γ_n·Σ|g|.
In evaluation r = 1/√(v + eps) has three roundings more, and grad_input = g·s.

torch's batch norm has the same terms, any order of sums. Its layer norm takes Σh·x and Σh and
multiplies out: r·h + β·x + c with β = (m·Σh − Σh·x)·r³/K, c = −β·m − r·Σh/K: γ_{K+10} of the
magnitudes (|m|·Σ|h| + Σ|h·x|)·(|x| + |m|)·r³/K + r·(|h| + Σ|h|/K); weights alike; its group norm
too. Three roundings to a 16-bit type; its layer norm adds up weights' gradients row by row in that
type, in as many parts as there are threads: K more.

*rms_norm*: n = x·r, one rounding, and no mean of h: the same with m = 0 and without the last term.
CPU torch has no such op; its answer is its definition by smaller ops, in fp32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from golden.bounds.elementwise import true_of
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    gamma,
    is_short,
    least,
    near,
    unclaimed,
    unit,
)
from golden.bounds.reductions import finite, roundings
from golden.formats import Mask, Values
from golden.tensors import values_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class _Sized:
    """An output's magnitude, and the errors of either side."""

    size: Tensor
    npu: Tensor
    torch: Tensor
    short: int = 3
    """How often torch rounds to a 16-bit type."""


@dataclass(frozen=True)
class _Norm:
    """Operands in float64; m, r and s broadcast to x."""

    g: Tensor
    x: Tensor
    m: Tensor
    r: Tensor
    weight: Tensor | None
    """Broadcasts to x."""
    over: tuple[int, ...]
    """The dimensions that m and r are constant in."""
    rows: tuple[int, ...]
    """The dimensions that weights are constant in."""
    extra: int
    """Roundings of r."""
    in_type: bool = False
    """torch adds up the gradients of weights in a 16-bit type."""

    def of_input(self, h: Tensor, s: Tensor, *, centred: bool = True) -> _Sized:
        """grad_input = (h − n·Σ(h·n)/K − Σh/K)·s; without the last term if not `centred`."""
        n = (self.x - self.m) * self.r
        count = max(self.x.numel() // max(self.r.numel(), 1), 1)
        inner, plain = (t.abs().sum(self.over, keepdim=True) / count for t in (h * n, h))
        plain = plain * centred
        size = (h.abs() + n.abs() * inner + plain) * s.abs()
        npu, other = (
            (n.abs() * inner * gamma(k + 8) + plain * gamma(k + 2)) * s.abs() + 6 * U * size
            for k in (roundings(*(self.x.shape[at] for at in self.over)), count + 4)
        )
        return _Sized(size, npu, other)

    def of_input_in_layers(self, h: Tensor) -> _Sized:
        """The same, with torch's layer norm."""
        made = self.of_input(h, self.r)
        count = max(self.x.numel() // max(self.m.numel(), 1), 1)
        plain, moved = (t.abs().sum(self.over, keepdim=True) / count for t in (h, h * self.x))
        factor = (self.m.abs() * plain + moved) * self.r.abs() ** 3
        size = factor * (self.x.abs() + self.m.abs()) + self.r.abs() * (h.abs() + plain)
        return _Sized(size, made.npu, made.torch + gamma(count + 10) * size)

    def of_weight(self) -> _Sized:
        """Σ g·n; torch may take Σ g·x·r and Σ g·m·r apart."""
        apart = (self.g * self.r).abs() * (self.x.abs() + self.m.abs())
        size = (self.g * (self.x - self.m) * self.r).abs()
        count = max(self.g[self.corner].numel(), 1)
        npu = gamma(self.roundings + 4 + self.extra) * size.sum(self.rows)
        size = apart.sum(self.rows)
        return _Sized(size, npu, gamma(count + 8) * size, 3 + count * self.in_type)

    def of_bias(self) -> _Sized:
        """Σ g."""
        size = self.g.abs().sum(self.rows)
        count = max(self.g[self.corner].numel(), 1)
        npu = gamma(self.roundings) * size
        return _Sized(size, npu, gamma(count + 1) * size, 3 + count * self.in_type)

    @property
    def roundings(self) -> int:
        """Of the NPU's sums over rows."""
        return roundings(*(self.g.shape[at] for at in self.rows))

    @property
    def corner(self) -> tuple[slice | int, ...]:
        """The elements that one weight meets."""
        return tuple(slice(None) if at in self.rows else 0 for at in range(self.g.dim()))


def _batch(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    g, x = finite(call["grad_out"]), finite(call["input"])
    shape = (1, -1, *[1] * (x.dim() - 2))
    train = call["train"]
    m, r = (
        finite(call[name]).reshape(shape)
        for name in (("save_mean", "save_invstd") if train else ("running_mean", "running_var"))
    )
    r = r if train else (r + call["eps"]).rsqrt()
    weight = None if call["weight"] is None else finite(call["weight"]).reshape(shape)
    dims = (0, *range(2, x.dim()))
    norm = _Norm(g, x, m, r, weight, dims, dims, 0 if train else 3)
    s = r if weight is None else r * weight
    if train:
        first = norm.of_input(g, s)
    else:
        size = (g * s).abs()
        first = _Sized(size, 6 * U * size, 8 * U * size)
    return _expected(subject, norm, first)


def _layer(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    g, x = finite(call["grad_out"]), finite(call["input"])
    split = x.dim() - len(call["normalized_shape"])
    weight = None if call["weight"] is None else finite(call["weight"])
    over, rows = tuple(range(split, x.dim())), tuple(range(split))
    m, r = finite(call["mean"]), finite(call["rstd"])
    norm = _Norm(g, x, m, r, weight, over, rows, 0, in_type=True)
    return _expected(subject, norm, norm.of_input_in_layers(g if weight is None else g * weight))


def _group(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    groups, channels = call["group"], call["C"]
    spatial = call["input"].shape[2:]
    split, ones = (call["N"], groups, channels // groups, *spatial), [1] * len(spatial)
    g, x = (finite(call[name]).reshape(split) for name in ("grad_out", "input"))
    m, r = (finite(call[name]).reshape(*split[:2], 1, *ones) for name in ("mean", "rstd"))
    weight = call["weight"]
    weight = None if weight is None else finite(weight).reshape(1, groups, -1, *ones)
    places = tuple(range(3, len(split)))
    norm = _Norm(g, x, m, r, weight, (2, *places), (0, *places), 0)
    return _expected(subject, norm, norm.of_input_in_layers(g if weight is None else g * weight))


def _rms(subject: Subject) -> tuple[Expectation | None, ...]:
    call = subject.call
    g, x, r = (finite(call[name]) for name in ("grad_out", "input", "rstd"))
    split = x.dim() - len(call["normalized_shape"])
    weight = None if call["weight"] is None else finite(call["weight"])
    over, rows = tuple(range(split, x.dim())), tuple(range(split))
    norm = _Norm(g, x, torch.zeros_like(r), r, weight, over, rows, 0)
    h = g if weight is None else g * weight
    return _expected(subject, norm, norm.of_input(h, r, centred=False))


def _expected(subject: Subject, norm: _Norm, first: _Sized) -> tuple[Expectation | None, ...]:
    found: list[Expectation | None] = []
    types = {x.dtype for x in subject.call.tensors() if is_short(x.dtype)}
    short = max(types, key=unit, default=None)  # torch may add in it, whatever the result's type
    sides = (first, norm.of_weight(), norm.of_bias())
    for at, (answer, made) in enumerate(zip(subject.answers, sides, strict=False)):
        if answer is None:
            found.append(None)
            continue
        tiny = TINY * 64 * (1 + made.size)
        other = 2 * made.torch + made.npu + FLUSH
        if short is not None:
            other = other + made.short * (unit(short) * made.size + least(short))
        npu, far, top = (
            values_of(t.reshape(answer.shape).contiguous())
            for t in (made.npu + tiny, other + tiny, made.size)
        )
        limit = top if is_short(answer.dtype) else 0.0
        true = true_of(subject, at)
        admitted = near(answer.dtype, true, npu, far, peak=top, torch_peak=limit)
        found.append(_of_infinities(subject, admitted))
    return tuple(found)


def _of_infinities(subject: Subject, expectation: Expectation) -> Expectation:
    """∞ − ∞ in a sum, as mixed precision has it before a scale shrinks: each formula has NaN, ∞ and
    −∞ at other places, and none of them a number. Where the true sum is ∞, others are that or
    NaN."""
    tensors = subject.call.tensors()
    true = expectation.true
    lost = ~np.isfinite(true)
    infinite = any(x.isinf().any() for x in tensors)
    if not lost.any() or not infinite or any(x.isnan().any() for x in tensors):
        return expectation

    def admits(values: Values) -> Mask:
        alike = np.isnan(values) | (values == true) | (np.isnan(true) & np.isinf(values))
        return np.asarray(~lost | alike)

    return replace(unclaimed(expectation, lost), chosen=admits)


RULES: dict[str, Rule] = {
    "native_batch_norm_backward": _batch,
    "native_layer_norm_backward": _layer,
    "native_group_norm_backward": _group,
    "_fused_rms_norm_backward": _rms,
}
