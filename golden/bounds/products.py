# SPDX-License-Identifier: Apache-2.0
"""Sums of products in any order: matrix products that golden.bounds.matmul does not take.

Products are exact in the fma chain and every one passes at most n roundings, so in any order the
sum is within γ_n·S of the true one, S the sum of the magnitudes: the same op on them. n = K + 3
covers an initial value, a scale and the last rounding; torch rounds a scaled operand to 16 bits,
and the product of addmv. Nothing is claimed of torch where the true value is not finite. In 16 bits
it takes subnormal operands as 0. The NPU's products are one chain each, with the bound of
golden.bounds.chains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil

import numpy as np
import torch

from driver.runtime.torch_types import NPU_TYPES
from golden.bounds.chains import partial_sums
from golden.bounds.elementwise import true_of
from golden.bounds.exact import by_type
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    gamma,
    is_short,
    near,
    torch_open,
    unit,
)
from golden.bounds.reductions import LONGEST, PART, finite, roundings
from golden.bounds.specified import SpecifiedBits, of_product
from golden.calls import OpCall, base_name, truths
from golden.formats import Floats, Mask
from golden.products import Product
from golden.tensors import values_of


def _left(call: OpCall) -> torch.Tensor:
    """The first factor of a matrix product."""
    factor = next(call[name] for name in _LEFT if name in call.arguments)
    assert isinstance(factor, torch.Tensor)
    return factor


_LEFT = ("mat1", "batch1", "input", "mat", "vec1", "self")


def largest(positive: Mapping[str, object]) -> float:
    """The largest magnitude among the operands."""
    tensors = [x for x in positive.values() if isinstance(x, torch.Tensor) and x.numel()]
    return max((float(x.max()) for x in tensors), default=0.0)


Chain = Callable[[OpCall, torch.Tensor], Floats | None]
"""The NPU's error per element of torch's answer, where its order of the products is known."""


def summed(terms: Callable[[OpCall], int], chain: Chain | None = None) -> Rule:
    """A sum of `terms` products per element."""

    def rule(subject: Subject) -> tuple[Expectation | None, ...]:
        call, dtype = subject.call, subject.answer().dtype
        positive = {
            name: finite(value).abs() if isinstance(value, torch.Tensor) else value
            for name, value in call.arguments.items()
        }
        for scale in ("alpha", "beta"):
            if scale in positive:
                positive[scale] = abs(positive[scale])
        (magnitudes,) = truths(call, **positive)
        assert magnitudes is not None
        count = terms(call)
        size = values_of(magnitudes)
        error = gamma(count + 3) * size + TINY * (count + 1)
        scales = [float(call.arguments.get(name, 1)) for name in ("alpha", "beta")]
        scaled = any(scale not in (0, 1) for scale in scales) or base_name(call.op) == "addmv"
        other = 2 * error
        if is_short(dtype):
            other = other + (count + 1) * FLUSH * (1 + size + largest(positive))
            other = other + (3 * unit(dtype) * size if scaled else 0.0)
        peak = size / min(1.0, *(abs(s) or 1.0 for s in scales))
        short = peak if is_short(dtype) and scaled else 0.0
        own = None if chain is None else chain(call, subject.answer())
        npu = error if own is None else np.minimum(error, own)
        made = near(dtype, true_of(subject), npu, other, peak=peak, torch_peak=short)
        return (torch_open(made, ~np.isfinite(made.true)),)

    return rule


def _chain(call: OpCall, answer: torch.Tensor) -> Floats | None:
    """The product in fp32, then beta·c and alpha·product, each with its constant's rounding and its
    own; where nothing is scaled, the chain starts from c."""
    names = _FACTORS.get(base_name(call.op))
    if names is None or not answer.numel():
        return None
    left, right = (finite(call[name]) for name in names)
    terms = left.shape[-1]
    if not terms:
        return None
    a, b = _matrices(left), _matrices(right if right.dim() > 1 else right.unsqueeze(1))
    addend, beta, alpha = _scales(call)
    starts = alpha == 1 and beta == 1 and call["self"].dtype is answer.dtype
    c = finite(addend).expand(answer.shape).reshape(len(a), a.shape[1], -1) if starts else None
    sums = partial_sums(a.numpy(), b.numpy(), None if c is None else c.numpy())
    if not left.dim() > 1 and terms > LONGEST:  # a chain for each part, then the sum of the parts
        error = gamma(PART + roundings(ceil(terms / PART))) * sums.absolute
        error = error + TINY * terms + sums.float64_error(terms)
    else:
        error = sums.chain_error(terms)
    error = error.reshape(answer.shape)
    if not starts and (alpha != 1 or beta):
        made = np.abs(sums.total).reshape(answer.shape) + error
        added = values_of(finite(addend).abs().expand(answer.shape)) if beta else 0.0
        error = abs(alpha) * error + gamma(3) * (abs(alpha) * made + abs(beta) * added) + 3 * TINY
    return np.asarray(error)


def _matrices(factor: torch.Tensor) -> torch.Tensor:
    """[batch, rows, columns] of a factor with one batch dimension, or without."""
    return factor.reshape(-1, *factor.shape[-2:]) if factor.dim() > 1 else factor.reshape(1, 1, -1)


def _scales(call: OpCall) -> tuple[torch.Tensor, float, float]:
    """c, beta and alpha; beta 0 where nothing is added."""
    if "alpha" not in call.arguments:
        return torch.zeros(()), 0.0, 1.0
    return call["self"], float(call["beta"]), float(call["alpha"])


_FACTORS = {
    "mv": ("self", "vec"),
    "dot": ("self", "tensor"),
    "addmv": ("mat", "vec"),
    "addmm": ("mat1", "mat2"),
    "baddbmm": ("batch1", "batch2"),
}
"""Op → its factors."""


def behind_rows(a: torch.Tensor) -> Mask:
    """Rows, [..., M], of a 16-bit first factor [..., M, K] whose products torch may turn into NaN.

    Its kernels for AMX take bf16 in pairs along K. When K is odd, they multiply what lies in memory
    behind a row by 0, so that it matters if that is an infinity or NaN.
    """
    *sizes, depth = a.shape
    if depth % 2 == 0 or a.stride(-1) != 1:
        return np.zeros(sizes, np.bool_)
    stored = a.untyped_storage().nbytes() // a.element_size()
    places = torch.tensor(a.storage_offset() + depth)
    for size, stride in zip(sizes, a.stride(), strict=False):
        places = places[..., None] + torch.arange(size) * stride
    behind = a.as_strided((stored,), (1,), 0)[places.clamp(max=stored - 1)]
    return np.asarray(((places < stored) & ~behind.isfinite()).numpy())


def matrix_product(subject: Subject) -> tuple[Expectation | None, ...]:
    """Of matrices or vectors, with any factors alpha and beta."""
    a = _left(subject.call)
    (made,) = summed(lambda _: a.shape[-1], _chain)(subject)
    assert made is not None
    if is_short(a.dtype) and a.dim() > 1 and made.true.shape[:-1] == a.shape[:-1]:
        made = torch_open(made, np.broadcast_to(behind_rows(a)[..., None], made.true.shape))
    return (replace(made, specified=_specified(subject.call, subject.answer())),)


def _specified(call: OpCall, answer: torch.Tensor) -> SpecifiedBits | None:
    """Of products of a vector that are one chain."""
    name, dtype = base_name(call.op), NPU_TYPES[answer.dtype]
    if name not in ("mv", "dot"):
        return None
    a, b = (call[factor] for factor in _FACTORS[name])
    if (a.dim() == 1 and len(a) > LONGEST) or {a.dtype, b.dtype} != {answer.dtype}:
        return None
    sizes = tuple(answer.shape)
    return of_product(Product(a.reshape(-1, len(b)), b[:, None], None, dtype, dtype, sizes))


RULES: dict[str, Rule] = dict.fromkeys(("matmul", "mv", "addmv", "dot"), by_type(matrix_product))
