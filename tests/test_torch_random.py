# SPDX-License-Identifier: Apache-2.0
"""Random calls on the NPU and on the CPU: the same types, sizes, values and refusals."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from random_calls import CALLS, RandomCall
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

EXAMPLES = int(os.environ.get("NPU_RANDOM_CALLS", "3000"))
_ERRORS = (RuntimeError, ValueError, TypeError, IndexError)
"""What torch raises for arguments that an op does not take; NotImplementedError is one of them."""
_OF_TRUTH = ("abs", "ceil", "clamp", "floor", "pow", "relu", "round", "trunc")
"""Ops that the CPU does not have for truth values."""
_LARGE = 128
"""Smaller integers are numbers of every floating-point type, and of every integer type negated."""
_BOUNDS = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def _outcome(call: RandomCall, device: str) -> Any:
    def moved(value: Any) -> Any:
        return value.to(device) if isinstance(value, Tensor) else value

    args, options = tree_map(moved, (call.args, call.options))
    try:
        found = call.function(*args, **options)
        return [x.cpu() if isinstance(x, Tensor) else x for x in tree_leaves(found)]
    except _ERRORS as error:
        return error


def _same(found: Tensor, expected: Tensor) -> bool:
    if found.dtype is not expected.dtype or found.shape != expected.shape:
        return False
    bound = _BOUNDS.get(expected.dtype, 0.0)
    return torch.allclose(found.double(), expected.double(), bound, bound, equal_nan=True)


def _is_open(call: RandomCall) -> bool:
    """Values that are not defined, or for which docs/numerics.md claims nothing: conversions of
    floats that an integer type has no number for, integers beyond the digits of a 16-bit float
    beside it, angles of many turns, divisors of the least integer, sums of them in floats, powers
    of truth."""
    wanted = [x for x in (*call.args, *call.options.values()) if isinstance(x, torch.dtype)]
    operands = [x for x in tree_leaves(call.args) if isinstance(x, Tensor) and x.numel()]
    floats = [x for x in operands if x.dtype.is_floating_point]
    whole = any(not dtype.is_floating_point and dtype is not torch.bool for dtype in wanted)
    integers = [x for x in operands if not x.dtype.is_floating_point]
    large = any(int(abs(x.double()).max()) >= _LARGE for x in integers)
    short = any(x.dtype is not torch.float32 for x in floats)
    name = call.name.removesuffix("_")
    exact = name in ("sin", "cos", "gcd", "lcm")
    sums = name in ("sum", "cumsum", "prod", "cumprod") and wanted
    truth = name == "pow" and all(x.dtype is torch.bool for x in operands)
    return bool((whole and floats) or (large and (short or exact or sums)) or truth)


def _may_differ(call: RandomCall, found: list[Any], refusal: Exception) -> bool:
    """Where the CPU refuses and the NPU need not: a divisor of 0 that lies in device memory, truth
    values that an op leaves as they are, nothing to compute."""
    operands = [x for x in tree_leaves(call.args) if isinstance(x, Tensor)]
    truth = all(x.dtype is torch.bool for x in operands)
    kept = truth and call.name.removesuffix("_") in _OF_TRUTH
    return "ZeroDivisionError" in str(refusal) or kept or not any(x.numel() for x in found)


@pytest.mark.broad
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="NPU_RANDOM_CALLS" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(CALLS)
def test_a_random_call_does_what_it_does_on_the_cpu(call: RandomCall) -> None:
    warnings.simplefilter("ignore")
    note(str(call))
    expected, found = _outcome(call, "cpu"), _outcome(call, "npu")
    if isinstance(found, NotImplementedError):
        return  # refused, with a reason
    if isinstance(expected, Exception):
        refused = isinstance(found, Exception) or _may_differ(call, found, expected)
        assert refused, f"{call}: {found}, on the CPU {expected}"
    elif not _is_open(call):
        assert not isinstance(found, Exception), f"{call}: {found!r}, on the CPU {expected}"
        pairs = zip(found, expected, strict=True)
        assert all(_same(x, y) for x, y in pairs), f"{call}: {found}, on the CPU {expected}"
