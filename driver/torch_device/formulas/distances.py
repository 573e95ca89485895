# SPDX-License-Identifier: Apache-2.0
"""Distances between rows, norms, margins, and running sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor


# ---------------------------------------------------------------------- distances
def _norm(difference: Tensor, p: float) -> Tensor:
    """The p-norm along the last dimension."""
    size = difference.abs()
    if p == 0:
        return size.ceil().clamp(max=1).sum(-1)  # NaN stays
    if p == 1:
        return size.sum(-1)
    if p == 2:
        return (difference * difference).sum(-1).sqrt()
    if p == math.inf:
        if size.shape[-1]:
            return size.amax(-1)
        return size.sum(-1)
    return (size**p).sum(-1) ** (1 / p)


def _norm_gradient(difference: Tensor, norm: Tensor, p: float) -> Tensor:
    """The derivative of the p-norm by each difference; 0 where the norm is 0."""
    if p == 0:
        return torch.zeros_like(difference)
    sign, size, norm = difference.sign(), difference.abs(), norm.unsqueeze(-1)
    if p == 1:
        return sign
    if p == math.inf:
        return torch.where(size == norm, sign, 0.0)
    slope = sign * size ** (p - 1) / norm ** (p - 1)
    return torch.where((norm == 0) | (size == 0), 0.0, slope)


def cdist_forward(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """[…, P, R]: the distance of each row of x1 from each of x2."""
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """The gradient of x1."""
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if not difference.numel():
        return torch.zeros_like(x1)
    slope = _norm_gradient(difference, cdist, p)
    return (grad.unsqueeze(-1) * slope).sum(-2)


def _pairs(rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
    one, other = torch.triu_indices(rows, rows, 1).to(device)
    return one, other


def pdist_forward(self: Tensor, p: float = 2) -> Tensor:
    """The distance of each pair of rows, in the order of triu_indices."""
    one, other = _pairs(self.shape[0], self.device)
    return _norm(self[one] - self[other], p)


def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    """The gradient of the rows."""
    one, other = _pairs(self.shape[0], self.device)
    slope = grad.unsqueeze(-1) * _norm_gradient(self[one] - self[other], pdist, p)
    found = torch.zeros_like(self).index_add(0, one, slope)
    return found.index_add(0, other, -slope)


def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices whose p-norm is above a limit, scaled down to it."""
    dims = [d for d in range(self.dim()) if d != dim % self.dim()]
    size = self.float().abs()
    norm = size.amax(dims, True) if p == math.inf else (size**p).sum(dims, True) ** (1 / p)
    factor = torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return self * factor.to(self.dtype)


def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """log Σ e^x of what lies before, each element included: pairs, then pairs of pairs, …"""
    found, step = self, 1
    size = self.shape[dim] if self.dim() else 1
    while step < size:
        later, before = found.narrow(dim, step, size - step), found.narrow(dim, 0, size - step)
        joined = torch.logaddexp(later, before)
        found = torch.cat([found.narrow(dim, 0, step), joined], dim)
        step *= 2
    return found.clone() if found is self else found


# ---------------------------------------------------------------------- margins
_NONE, _MEAN = 0, 1


def _share(grad: Tensor, reduction: int, rows: int) -> Tensor:
    """The gradient of each row's loss: [rows, 1]."""
    if reduction == _NONE:
        return grad.reshape(-1, 1)
    return (grad / rows if reduction == _MEAN else grad).reshape(1, 1)


def multi_margin_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    p: float,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
) -> Tensor:
    """Of Σ max(0, margin − x[target] + x)^p ÷ classes, over the classes but the target."""
    rows = self.reshape(-1, self.shape[-1]) if self.dim() else self.reshape(1, 1)
    classes = target.reshape(-1, 1)
    own = torch.zeros_like(rows).scatter(1, classes, 1.0)
    gap = margin - rows.gather(1, classes) + rows
    slope = (gap > 0).to(rows.dtype) * (1 - own) / rows.shape[1]
    slope = slope if p == 1 else slope * 2 * gap
    slope = slope if weight is None else slope * weight[target.reshape(-1)].unsqueeze(1)
    slope = slope - own * slope.sum(1, keepdim=True)
    return (slope * _share(grad_output, reduction, rows.shape[0])).reshape(self.shape)


def _labels(self: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of scores, the labels of each with 0 where there is none, and where there is one."""
    rows = self.reshape(-1, self.shape[-1]) if self.dim() else self.reshape(1, 1)
    labels = target.reshape(rows.shape)
    listed = (labels < 0).long().cumsum(1) == 0  # before the first −1
    return rows, torch.where(listed, labels, 0), listed


def multilabel_margin_loss_forward(
    self: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    """Σ max(0, 1 − x[a target] + x[not a target]) ÷ classes, over all pairs; what is a target."""
    rows, labels, listed = _labels(self, target)
    counts = torch.zeros_like(rows).scatter_add(1, labels, listed.to(rows.dtype))
    is_target = (counts > 0).to(rows.dtype)
    gaps = (1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
    gaps = gaps * listed.unsqueeze(2) * (1 - is_target).unsqueeze(1)
    losses = gaps.sum((1, 2)) / rows.shape[1]
    own = is_target.reshape(target.shape)
    if reduction == _NONE:
        return losses.reshape(self.shape[:-1]), own
    return (losses.mean() if reduction == _MEAN else losses.sum()), own


def multilabel_margin_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Tensor:
    """Of Σ max(0, 1 − x[a target] + x[not a target]) ÷ classes, over all pairs."""
    rows, labels, listed = _labels(self, target)
    chosen = rows.gather(1, labels)
    other = 1 - is_target.reshape(rows.shape).to(rows.dtype)
    pairs = 1 - chosen.unsqueeze(2) + rows.unsqueeze(1) > 0
    hits = pairs.to(rows.dtype) * listed.unsqueeze(2) * other.unsqueeze(1) / rows.shape[1]
    slope = hits.sum(1).scatter_add(1, labels, -hits.sum(2))
    return (slope * _share(grad_output, reduction, rows.shape[0])).reshape(self.shape)


DEFINITIONS: dict[str, Callable[..., Any]] = {
    "aten._cdist_forward.default": cdist_forward,
    "aten._cdist_backward.default": cdist_backward,
    "aten._pdist_forward.default": pdist_forward,
    "aten._pdist_backward.default": pdist_backward,
    "aten.renorm.default": renorm,
    "aten._logcumsumexp.default": logcumsumexp,
    "aten.multi_margin_loss_backward.default": multi_margin_loss_backward,
    "aten.multilabel_margin_loss_forward.default": multilabel_margin_loss_forward,
    "aten.multilabel_margin_loss_backward.default": multilabel_margin_loss_backward,
}
