# SPDX-License-Identifier: Apache-2.0
"""The samples of torch's op_db: calls of every op with arguments that torch's own tests use.

The one place that imports torch.testing._internal. Knows nothing of the NPU.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

Call = Callable[[], Any]
_SEED = 1234
"""torch's tests start their generators with it for every sample."""


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


def samples(info: Any, dtype: torch.dtype, gradients: bool = False) -> Iterator[Any]:
    """The samples that `sample_inputs` of an entry gives, in a fraction of its time: that looks for
    the running test in every frame of the stack, with the frame's source."""
    return _reseeded(info.sample_inputs_func(info, "cpu", dtype, gradients))


def wrong_samples(info: Any) -> Iterator[Any]:
    """Those that `error_inputs` gives, likewise."""
    return _reseeded(info.error_inputs_func(info, "cpu"))


def calls(name: str, dtype: torch.dtype, limit: int, seed: int) -> list[Call]:
    """At most `limit` samples, evenly spread over those of the op; the same ones for a seed."""
    info = DATABASE[name]
    _start_generators(crc32(f"{seed} {name} {dtype}".encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = list(info.sample_inputs_func(info, "cpu", dtype, False))
    chosen = sorted({at * len(given) // limit for at in range(limit)}) if given else []
    return [_call(info, given[at]) for at in chosen]


def _reseeded(drawn: Iterable[Any]) -> Iterator[Any]:
    each = iter(drawn)
    while True:
        _start_generators(_SEED)
        try:
            yield next(each)
        except StopIteration:
            return


def _start_generators(number: int) -> None:
    """All that op_db draws from."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    np.random.seed(number)


def _call(info: Any, sample: Any) -> Call:
    def call() -> Any:
        return info.op(sample.input, *sample.args, **sample.kwargs)

    return call
