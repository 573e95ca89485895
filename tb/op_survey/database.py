# SPDX-License-Identifier: Apache-2.0
"""The samples of torch's op_db: calls of every op with arguments that torch's own tests use.

The one place that imports torch.testing._internal. Knows nothing of the NPU.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

Call = Callable[[], Any]


def full_name(info: Any) -> str:
    """Name of an entry: the op's, and its variant after a dot."""
    variant = info.variant_test_name
    return f"{info.name}.{variant}" if variant else str(info.name)


DATABASE: dict[str, Any] = {full_name(info): info for info in op_db}


def supports(name: str, dtype: torch.dtype) -> bool:
    """Whether CPU torch has the op in this type."""
    return dtype in DATABASE[name].dtypes


def own_names(name: str) -> frozenset[str]:
    """Names of the ATen ops, without overload, that count as the op itself."""
    info = DATABASE[name]
    known = {info.name, info.aten_name, *(alias.name for alias in info.aliases)}
    return frozenset(str(one).rpartition(".")[2] for one in known if one)


def calls(name: str, dtype: torch.dtype, limit: int, seed: int) -> list[Call]:
    """At most `limit` samples, evenly spread over those of the op; the same ones for a seed."""
    info = DATABASE[name]
    seeded(seed, f"{name} {dtype}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(info.sample_inputs("cpu", dtype, requires_grad=False, set_seed=False))
    chosen = sorted({at * len(samples) // limit for at in range(limit)}) if samples else []
    return [_call(info, samples[at]) for at in chosen]


def seeded(seed: int, what: str) -> None:
    """Start every generator that op_db draws from over, alike for the same `what`."""
    number = crc32(f"{seed} {what}".encode())
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def _call(info: Any, sample: Any) -> Call:
    def call() -> Any:
        return info.op(sample.input, *sample.args, **sample.kwargs)

    return call
