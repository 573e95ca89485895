# SPDX-License-Identifier: Apache-2.0
"""The scores of attention, scale·Q·Kᵀ + mask, and how far computed ones may be from them.

A score s over D products has an error scale·e_D, e_D that of its chain (golden.bounds.chains; in
any order γ_{D+3}·Σ|q·k|), and 2u·|s| of the factor and the product with it: ε. A mask m is added
with one rounding, which is monotonic, so the masked score lies in [fl(s − ε + m), fl(s + ε + m)].
Both ends are the same number where m is far larger than s, as for the keys that a mask of −1e9
hides; all weights of a row are the same where it hides all of its keys.

So what stands for a score is c = fl(s + m) in fp32, and its error is the distance to the farther
end. Kernels of torch with 16-bit scores round both s and c to that type.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from golden.bounds.chains import Sums, partial_sums
from golden.bounds.expectation import SLACK, U, gamma
from golden.bounds.reductions import finite
from golden.calls import OpCall
from golden.tensors import values_of

Tensor = torch.Tensor


@dataclass(frozen=True)
class Scores:
    """In float64, a head of keys and values per head of queries."""

    product: Tensor
    """s, without a mask."""
    absolute: Tensor
    """Σ|q·k|·scale"""
    chain: Tensor
    """The error of s as the matrix engine adds it up."""
    mask: Tensor | None
    """What is added."""
    true: Tensor
    """s, or c where something is added; −∞ where nothing is let through."""
    values: Tensor
    """V"""
    depth: int
    """D"""

    @property
    def distances(self) -> Tensor:
        """Each score minus the largest of its row; −∞ in a row with nothing to attend to."""
        maximum = self.true.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        return (self.true - maximum).nan_to_num(nan=0.0, neginf=-torch.inf)

    def npu_error(self) -> Tensor:
        """Of the NPU, which adds in order and keeps fp32."""
        return self._error(self.chain, (torch.float32,))

    def torch_error(self, dtype: torch.dtype) -> Tensor:
        """Of torch, which adds in any order and keeps fp32 or the type of the operands."""
        return self._error(2 * gamma(self.depth + 3) * self.absolute, (torch.float32, dtype))

    def _error(self, of_product: Tensor, kinds: tuple[torch.dtype, ...]) -> Tensor:
        found = of_product + 2 * U * self.product.abs()
        if self.mask is None and set(kinds) == {torch.float32}:
            return found
        added = 0.0 if self.mask is None else self.mask
        ends = [
            _rounded(_rounded_once(self.product + side * found, kind) + added, kind)
            for side in (-1 - SLACK, 1 + SLACK)
            for kind in kinds
        ]
        apart = torch.stack([(end - self.true).abs() for end in ends]).amax(0)
        return torch.where(self.true.isfinite(), apart, 0.0)


def _rounded(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype).double()


def _rounded_once(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Of a score in fp32 the rounding is part of its error."""
    return x if dtype is torch.float32 else _rounded(x, dtype)


def scores_of(call: OpCall) -> Scores:
    """The scores of a call, and what their errors are relative to."""
    q, k, v = (finite(call[name]) for name in ("query", "key", "value"))
    if k.shape[-3:-2] != q.shape[-3:-2] and q.dim() > 2:
        groups = q.shape[-3] // k.shape[-3]
        k, v = (x.repeat_interleave(groups, -3) for x in (k, v))
    scale, depth, mask = call["scale"], q.shape[-1], call["attn_mask"]
    scale = depth**-0.5 if scale is None else float(scale)
    product = true = q @ k.mT * scale
    added = None
    if call["is_causal"]:
        shape = true.shape[-2:]
        true = true.masked_fill(~torch.ones(shape, dtype=torch.bool).tril(), -torch.inf)
    if mask is not None and mask.dtype == torch.bool:
        true = true.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        added = mask.double()
        true = _rounded(true + added, torch.float32)
    chain = abs(scale) * torch.from_numpy(chain_of(q, k.mT).chain_error(depth))
    absolute = q.abs() @ k.abs().mT * abs(scale)
    return Scores(product, absolute, chain.reshape(product.shape), added, true, v, depth)


def chain_of(a: Tensor, b: Tensor) -> Sums:
    """The partial sums of products of matrices, one chain per element, [batch, M, N]."""
    left, right = (values_of(x).reshape(-1, *x.shape[-2:]) for x in (a, b))
    return partial_sums(left, right, None)
