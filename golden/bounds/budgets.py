# SPDX-License-Identifier: Apache-2.0
"""What the vector programs promise: docs/numerics.md's table of accuracy, as budgets.

`ULPS` is in ULP of fp32 before the rounding to the result's type; 0.5 is correctly rounded.
`SHORT` is the relative error, before that rounding, of the shorter program that serves results of a
16-bit type.
"""

from __future__ import annotations

import torch

CORRECT = 0.5
FUNCTION = 2.0

ULPS: dict[str, float] = {
    **dict.fromkeys(("sqrt", "reciprocal", "square"), CORRECT),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow"), FUNCTION),
    **dict.fromkeys(("sin", "cos", "tanh", "erf", "rsqrt", "tan", "asin", "acos"), FUNCTION),
    **dict.fromkeys(("atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh"), FUNCTION),
    **dict.fromkeys(("sigmoid", "silu", "gelu", "softplus"), FUNCTION),
}

_HALVES = (torch.float16, torch.bfloat16)
SHORT: dict[str, dict[torch.dtype, float]] = {
    "silu": {torch.float16: 2.0**-12.1, torch.bfloat16: 2.0**-11.2},
    "gelu": dict.fromkeys(_HALVES, 2.0**-12.1),
    "exp below a maximum": dict.fromkeys(_HALVES, 2.0**-13.6),
}


def exponential(dtype: torch.dtype) -> float:
    """Relative error of e^x, x ≤ 0, in softmax and attention with operands of `dtype`."""
    return SHORT["exp below a maximum"].get(dtype, 2 * FUNCTION * 2.0**-24)
