# SPDX-License-Identifier: Apache-2.0
"""What optimizers do with gradients.

*addcdiv*: a + v·(b ÷ c). The quotient rounds once (below the normal range by 2^-149), the product
and the sum once together (fma): u·(|v·b/c| + |result|) + 2^-149·(1 + |v|). torch takes (v·b) ÷ c
and adds: three roundings, of which the first loses up to 2^-149 that is divided by c. Where b/c or
v·b exceeds the largest fp32 number, nothing is claimed.

*addcmul*: a + v·b·c. v and v·b round (below the normal range by 2^-149, which is multiplied by c),
the product and the sum once together: 4·u·(|a| + |v·b·c|) + 2^-149·(1 + |c|). torch rounds those as
well, or multiplies b and c first: 5·u and 2^-149·(2 + |c| + |v|).

*lerp*: a + w·(b − a), from |w| = ½ on b − (1 − w)·(b − a): the difference, 1 − w, and the product
and the sum, at most 4 roundings of |a| + |w|·(|a| + |b|), or of |b| + |1 − w|·(|a| + |b|).
"""

from __future__ import annotations

import numpy as np
import torch

from golden.bounds.elementwise import running, true_of
from golden.bounds.expectation import (
    FLUSH,
    TINY,
    Expectation,
    Rule,
    Subject,
    U,
    is_short,
    near,
    unit,
)
from golden.bounds.promotion import promoted
from golden.bounds.reductions import finite
from golden.calls import OpCall, widened
from golden.tensors import values_of


def _addcdiv(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    a, b, c = (finite(call[name]).abs() for name in ("self", "tensor1", "tensor2"))
    v = abs(float(np.float32(call["value"])))
    divides = call["tensor2"].double().abs() > 0
    inverse = torch.where(divides & call["tensor2"].isfinite(), 1 / c, 0.0)
    quotient = b * inverse
    size = a + 2 * v * quotient
    npu = 2 * U * size + TINY * (2 + v)
    other = 2 * npu + FLUSH * (inverse + 1)
    if is_short(dtype):
        other = other + 3 * unit(dtype) * size
    peak = torch.maximum(torch.maximum(size, quotient), v * b)
    true = true_of(subject)
    left, right, top = (values_of(torch.broadcast_to(x, true.shape)) for x in (npu, other, peak))
    limit = top if is_short(dtype) else 0.0
    return (near(dtype, true, left, right, peak=top, torch_peak=limit),)


def _addcmul(subject: Subject) -> tuple[Expectation | None, ...]:
    call, dtype = subject.call, subject.answer().dtype
    a, b, c = (finite(call[name]).abs() for name in ("self", "tensor1", "tensor2"))
    v = abs(float(np.float32(call["value"])))
    size = a + v * b * c
    npu = 4 * U * size + TINY * (1 + c)
    other = 5 * U * size + TINY * (2 + c + v)
    if is_short(dtype):
        other = other + 2 * unit(dtype) * size
    peak = torch.maximum(size, torch.maximum(v * b, b * c))
    true = true_of(subject)
    left, right, top = (values_of(torch.broadcast_to(x, true.shape)) for x in (npu, other, peak))
    return (near(dtype, true, left, right, peak=top),)


def _apart(call: OpCall) -> torch.Tensor:
    """The terms of the difference, times a weight beyond 1."""
    a, b, w = (finite(torch.as_tensor(call[n])).abs() for n in ("self", "end", "weight"))
    return (a + b) * (1 + w)


def _lerp(call: OpCall) -> torch.Tensor:
    a, b = (torch.as_tensor(widened(call[n])).abs() for n in ("self", "end"))
    signed = torch.as_tensor(widened(call["weight"]), dtype=torch.float64)
    w = signed.abs()
    near, far = a + w * (a + b), b + (1 - signed).abs() * (a + b)
    return torch.where(w < 0.5, near, far)


RULES: dict[str, Rule] = {
    "addcdiv": _addcdiv,
    "addcmul": promoted(_addcmul),
    "lerp": running(_lerp, 4, _apart),
}
